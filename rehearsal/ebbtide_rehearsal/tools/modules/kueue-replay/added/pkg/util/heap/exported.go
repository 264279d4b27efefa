package heap

// First returns the head of the heap; nil if it is empty.
func (h *Heap[T, K]) First() *T {
	if len(h.data.keys) == 0 {
		return nil
	}
	return h.data.items[h.data.keys[0]].obj
}
