"""Protocol buffers of cluster-autoscaler's `externalgrpc` cloud provider, as far as the tests use them.

Field numbers are those of cloudprovider/externalgrpc/protos/externalgrpc.proto (k8s.io/autoscaler/
cluster-autoscaler@v0.0.0-20250613073258-1959f5f61f6c) and of generated.proto of k8s.io/api/core/v1 and
k8s.io/apimachinery 0.33.1. The descriptors are built at run time: protoc would need Kubernetes' files too.
"""

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE: Final = "clusterautoscaler.cloudprovider.v1.externalgrpc"
SERVICE: Final = f"{PACKAGE}.CloudProvider"

_FIELDS: Final = {
    "Quantity": "string:string=1",
    "ObjectMeta": "name:string=1 labels:map<string>=11 annotations:map<string>=12",
    "Taint": "key:string=1 value:string=2 effect:string=3",
    "NodeSpec": "providerID:string=3 taints:Taint*=5",
    "NodeCondition": "type:string=1 status:string=2",
    "NodeStatus": "capacity:map<Quantity>=1 allocatable:map<Quantity>=2 conditions:NodeCondition*=4",
    "Node": "metadata:ObjectMeta=1 spec:NodeSpec=2 status:NodeStatus=3",
    "Any": "type_url:string=1",
    "NodeGroup": "id:string=1 minSize:int32=2 maxSize:int32=3 debug:string=4",
    "ExternalGrpcNode": "providerID:string=1 name:string=2",
    "InstanceStatus": "instanceState:int32=1",
    "Instance": "id:string=1 status:InstanceStatus=2",
    "Empty": "",
    "Group": "id:string=1",
    "NodeGroups": "nodeGroups:NodeGroup*=1",
    "NodeGroupForNodeRequest": "node:ExternalGrpcNode=1",
    "NodeGroupForNodeResponse": "nodeGroup:NodeGroup=1",
    "GPULabelResponse": "label:string=1",
    "GetAvailableGPUTypesResponse": "gpuTypes:map<Any>=1",
    "TargetSize": "targetSize:int32=1",
    "Resize": "delta:int32=1 id:string=2",
    "DeleteNodes": "nodes:ExternalGrpcNode*=1 id:string=2",
    "Instances": "instances:Instance*=1",
    "TemplateNodeInfo": "nodeInfo:Node=1",
}
"""Messages by name: `field:type=number`, with `*` for repeated. Requests and responses of the same fields
share a message, since only field numbers are on the wire."""

METHODS: Final = {
    "NodeGroups": ("Empty", "NodeGroups"),
    "NodeGroupForNode": ("NodeGroupForNodeRequest", "NodeGroupForNodeResponse"),
    "GPULabel": ("Empty", "GPULabelResponse"),
    "GetAvailableGPUTypes": ("Empty", "GetAvailableGPUTypesResponse"),
    "Cleanup": ("Empty", "Empty"),
    "Refresh": ("Empty", "Empty"),
    "NodeGroupTargetSize": ("Group", "TargetSize"),
    "NodeGroupIncreaseSize": ("Resize", "Empty"),
    "NodeGroupDeleteNodes": ("DeleteNodes", "Empty"),
    "NodeGroupDecreaseTargetSize": ("Resize", "Empty"),
    "NodeGroupNodes": ("Group", "Instances"),
    "NodeGroupTemplateNodeInfo": ("Group", "TemplateNodeInfo"),
}
"""Implemented methods with their request and response. The others answer UNIMPLEMENTED, which the provider
treats as defaults: pricing, and options of a single node group."""

_Field = descriptor_pb2.FieldDescriptorProto


def _field(
    name: str, kind: str, number: int, *, repeated: bool = False
) -> descriptor_pb2.FieldDescriptorProto:
    label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    match kind:
        case "string":
            return _Field(name=name, number=number, label=label, type=_Field.TYPE_STRING)
        case "int32":
            return _Field(name=name, number=number, label=label, type=_Field.TYPE_INT32)
        case _:
            kind = f".{PACKAGE}.{kind}"
            return _Field(name=name, number=number, label=label, type=_Field.TYPE_MESSAGE, type_name=kind)


def _describe(message: descriptor_pb2.DescriptorProto, fields: str) -> None:
    for text in fields.split():
        name, _, rest = text.partition(":")
        kind, _, number = rest.partition("=")
        if kind.startswith("map<"):
            entry = message.nested_type.add(name=f"{name[0].upper()}{name[1:]}Entry")
            entry.options.map_entry = True
            entry.field.extend([_field("key", "string", 1), _field("value", kind[4:-1], 2)])
            kind = f"{message.name}.{entry.name}*"
        message.field.append(_field(name, kind.rstrip("*"), int(number), repeated=kind.endswith("*")))


def _messages() -> dict[str, type[Any]]:
    file = descriptor_pb2.FileDescriptorProto(name="externalgrpc.proto", package=PACKAGE, syntax="proto3")
    for name, fields in _FIELDS.items():
        _describe(file.message_type.add(name=name), fields)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in _FIELDS
    }


MESSAGES: Final[dict[str, type[Any]]] = _messages()
"""The message classes, by name."""
