#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""silc's reading of ONNX files against ONNX Runtime and ONNX's own reference evaluator.

  ort_check.py --eval BUILD/onnx_eval [--policies DIR]   compare; exit 77 when the packages are missing
  ort_check.py --corpus DIR                              write the small models as seeds for the fuzzer

Outputs are compared with ONNX Runtime in float32, Jacobians with central differences of the reference
evaluator on the model converted to float64. Run it with the environment of tools/setup/venv.sh ort.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

SKIP = 77
try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator
except ImportError as error:
    print(f"skipped: {error}; make the environment with tools/setup/venv.sh ort")
    sys.exit(SKIP)

FLOAT = TensorProto.FLOAT

# The reference evaluator takes one axis here, where opsets before 13 say all from that axis on.
VALUES_ONLY = {"Softmax 11, flattened"}


class Model:
    """A model under construction: M(opset).input(...).node(...).output(...)."""

    def __init__(self, opset, rng):
        self.opset, self.rng = opset, rng
        self.inputs, self.outputs, self.nodes, self.initializers = [], [], [], []
        self.count = 0

    def name(self, stem):
        self.count += 1
        return f"{stem}_{self.count}"

    def input(self, *shape, name=None):
        name = name or self.name("x")
        self.inputs.append(helper.make_tensor_value_info(name, FLOAT, shape))
        return name

    def weight(self, *shape, size=0.5, low=None, dtype=np.float32):
        data = self.rng.normal(size=shape) * size
        if low is not None:
            data = low + np.abs(data)
        return self.constant(data.astype(dtype))

    def constant(self, data):
        name = self.name("w")
        self.initializers.append(numpy_helper.from_array(np.asarray(data), name))
        return name

    def ints(self, *values):
        return self.constant(np.array(values, dtype=np.int64))

    def node(self, op, *inputs, outputs=1, **attributes):
        names = [self.name(op.lower()) for _ in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, name="/" + names[0], **attributes))
        return names[0] if outputs == 1 else names

    def output(self, *names):
        self.outputs += [helper.make_tensor_value_info(name, FLOAT, None) for name in names]
        return self

    def build(self):
        graph = helper.make_graph(self.nodes, "g", self.inputs, self.outputs, self.initializers)
        # IR 8 is what runtimes of all ages read
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)


def cases(rng):
    """(name, model) for every supported operator, in every form its opsets have."""
    def unary(op, opset=13, positive=False, **attributes):
        m = Model(opset, rng)
        x = m.input(1, 5)
        if positive:  # x² + 0.5
            x = m.node("Add", m.node("Mul", x, x), m.constant(np.float32(0.5)))
        return m.output(m.node(op, x, **attributes))

    for op in ["Relu", "Tanh", "Sigmoid", "Softplus", "Neg", "Abs", "Exp", "Erf", "Elu", "LeakyRelu", "Identity"]:
        yield op, unary(op)
    for op in ["Sqrt", "Log", "Reciprocal"]:
        yield op, unary(op, positive=True)
    yield "Elu alpha", unary("Elu", alpha=0.3)
    yield "LeakyRelu alpha", unary("LeakyRelu", alpha=0.3)
    yield "Clip 7", unary("Clip", opset=7, min=-0.5, max=0.7)

    m = Model(13, rng)
    x = m.input(1, 6)
    yield "Clip 13", m.output(m.node("Clip", x, m.constant(np.float32(-0.4)), m.constant(np.float32(0.6))))
    m = Model(13, rng)
    yield "Clip without low", m.output(m.node("Clip", m.input(1, 6), "", m.constant(np.float32(0.1))))

    for op in ["Add", "Sub", "Mul", "Div", "Min", "Max"]:
        m = Model(13, rng)
        x, u = m.input(2, 3), m.input(3)
        shifted = m.node("Add", m.node("Mul", u, u), m.constant(np.float32(0.5)))
        yield f"{op}, row", m.output(m.node(op, x, shifted))
        m = Model(8, rng)
        yield f"{op}, column and scalar", m.output(
            m.node(op, m.node(op, m.input(2, 3), m.weight(2, 1, low=0.5)), m.constant(np.float32(1.5))))
    m = Model(13, rng)
    yield "Pow", m.output(m.node("Pow", m.input(1, 4), m.constant(np.float32(2))))
    m = Model(13, rng)
    yield "Pow, integer exponent", m.output(m.node("Pow", m.input(1, 4), m.ints(3)))
    m = Model(13, rng)
    x = m.node("Exp", m.input(1, 4))
    yield "Pow of two variables", m.output(m.node("Pow", x, m.input(1, 4)))

    m = Model(13, rng)
    yield "MatMul", m.output(m.node("MatMul", m.input(1, 4), m.weight(4, 3)))
    m = Model(13, rng)
    yield "MatMul, batches", m.output(m.node("MatMul", m.input(2, 3, 4), m.weight(2, 4, 2)))
    m = Model(13, rng)
    yield "MatMul, broadcast batches", m.output(m.node("MatMul", m.input(2, 1, 3, 4), m.weight(5, 4, 2)))
    m = Model(13, rng)
    yield "MatMul, vector", m.output(m.node("MatMul", m.weight(3, 4), m.input(4)))
    m = Model(13, rng)
    x = m.input(3, 3)
    yield "MatMul with itself", m.output(m.node("MatMul", x, x))

    for trans_a in (0, 1):
        for trans_b in (0, 1):
            m = Model(11, rng)
            a = m.input(*((4, 2) if trans_a else (2, 4)))
            b = m.weight(*((3, 4) if trans_b else (4, 3)))
            yield f"Gemm {trans_a}{trans_b}", m.output(
                m.node("Gemm", a, b, m.weight(3), alpha=0.7, beta=1.3, transA=trans_a, transB=trans_b))
    m = Model(11, rng)
    yield "Gemm without C", m.output(m.node("Gemm", m.input(1, 4), m.weight(4, 3)))

    m = Model(13, rng)
    yield "Concat", m.output(m.node("Concat", m.input(2, 2), m.weight(2, 1), m.input(2, 3), axis=-1))
    m = Model(13, rng)
    yield "Concat, first axis", m.output(m.node("Concat", m.input(2, 2), m.input(1, 2), axis=0))

    m = Model(9, rng)
    yield "Slice 9", m.output(m.node("Slice", m.input(3, 8), starts=[1, -6], ends=[3, 1000], axes=[0, 1]))
    m = Model(13, rng)
    yield "Slice 13", m.output(m.node("Slice", m.input(3, 8), m.ints(-1), m.ints(-100), m.ints(1), m.ints(-3)))
    m = Model(13, rng)
    yield "Slice without axes", m.output(m.node("Slice", m.input(3, 8), m.ints(1, 2), m.ints(3, 2**62)))
    for opset, sizes in [(11, "attribute"), (13, "operand"), (13, None), (18, "number")]:
        m = Model(opset, rng)
        x = m.input(1, 7 if sizes == "number" else 6)
        if sizes == "attribute":
            parts = m.node("Split", x, outputs=2, axis=1, split=[2, 4])
        elif sizes == "operand":
            parts = m.node("Split", x, m.ints(1, 5), outputs=2, axis=-1)
        elif sizes == "number":
            parts = m.node("Split", x, outputs=4, axis=1, num_outputs=4)
        else:
            parts = m.node("Split", x, outputs=3, axis=1)
        yield f"Split {opset} {sizes}", m.output(*parts)
    m = Model(13, rng)
    yield "Gather", m.output(m.node("Gather", m.input(3, 4), m.constant(np.array([[0, -1], [2, 2]], np.int64)), axis=1))
    m = Model(13, rng)
    yield "Gather, scalar index", m.output(m.node("Gather", m.input(3, 4), m.constant(np.int64(1)), axis=0))
    m = Model(13, rng)
    yield "Reshape", m.output(m.node("Reshape", m.input(2, 3, 4), m.ints(0, -1)))
    m = Model(13, rng)
    yield "Flatten", m.output(m.node("Flatten", m.input(2, 3, 4), axis=2))
    m = Model(13, rng)
    yield "Transpose", m.output(m.node("Transpose", m.input(2, 3, 4), perm=[2, 0, 1]))
    m = Model(13, rng)
    yield "Transpose, default", m.output(m.node("Transpose", m.input(2, 3)))
    m = Model(11, rng)
    yield "Squeeze and Unsqueeze 11", m.output(m.node("Unsqueeze", m.node("Squeeze", m.input(1, 3, 1), axes=[0]), axes=[0, 3]))
    m = Model(13, rng)
    yield "Squeeze and Unsqueeze 13", m.output(m.node("Unsqueeze", m.node("Squeeze", m.input(1, 3, 1)), m.ints(-1)))
    m = Model(13, rng)
    yield "Expand", m.output(m.node("Expand", m.input(1, 3), m.ints(2, 1, 3)))
    m = Model(13, rng)
    yield "Constant", m.output(m.node("Add", m.input(1, 3), m.node("Constant", value_floats=[1.0, 2.0, 3.0])))
    m = Model(13, rng)
    yield "Constant tensor", m.output(
        m.node("Mul", m.input(1, 3), m.node("Constant", value=numpy_helper.from_array(np.float32([[1, 2, 3]])))))
    m = Model(13, rng)
    yield "ConstantOfShape", m.output(m.node("Add", m.input(2, 3), m.node(
        "ConstantOfShape", m.ints(3), value=helper.make_tensor("v", FLOAT, [1], [0.5]))))

    m = Model(13, rng)
    x = m.input(1, 2, 6)
    rows = m.node("Unsqueeze", m.node("Gather", m.node("Shape", x), m.constant(np.int64(0)), axis=0), m.ints(0))
    shape = m.node("Concat", rows, m.node("Div", m.ints(24), m.ints(2)), axis=0)
    yield "Shape arithmetic", m.output(m.node("Reshape", x, shape))

    m = Model(13, rng)
    yield "Half-precision weights", m.output(
        m.node("MatMul", m.input(1, 3), m.node("Cast", m.weight(3, 2, dtype=np.float16), to=FLOAT)))
    m = Model(11, rng)
    yield "Softmax 11", m.output(m.node("Softmax", m.input(2, 6), axis=1))
    m = Model(11, rng)
    yield "Softmax 11, flattened", m.output(m.node("Softmax", m.input(2, 2, 3), axis=1))
    for opset, axis in [(13, -1), (13, 0)]:
        m = Model(opset, rng)
        yield f"Softmax {opset} axis {axis}", m.output(m.node("Softmax", m.input(2, 2, 3), axis=axis))
    for op, since in [("ReduceMean", 18), ("ReduceSum", 13)]:
        m = Model(11, rng)
        yield f"{op} 11", m.output(m.node(op, m.input(2, 3, 2), axes=[0, -1], keepdims=0))
        m = Model(since, rng)
        yield f"{op} {since}", m.output(m.node(op, m.input(2, 3, 2), m.ints(1)))
        m = Model(since, rng)
        yield f"{op} of all", m.output(m.node(op, m.input(2, 3, 2), keepdims=0))
    m = Model(17, rng)
    yield "LayerNormalization", m.output(
        m.node("LayerNormalization", m.input(2, 6), m.weight(6, low=0.5), m.weight(6), axis=-1, epsilon=1e-3))
    m = Model(17, rng)
    yield "LayerNormalization of two axes", m.output(
        m.node("LayerNormalization", m.input(2, 2, 3), m.weight(2, 3, low=0.5), axis=1))
    m = Model(13, rng)
    x = m.input(1, 6)
    centred = m.node("Sub", x, m.node("ReduceMean", x, axes=[-1]))
    variance = m.node("ReduceMean", m.node("Pow", centred, m.constant(np.float32(2))), axes=[-1])
    yield "LayerNormalization, taken apart", m.output(
        m.node("Div", centred, m.node("Sqrt", m.node("Add", variance, m.constant(np.float32(1e-5))))))

    # normaliser, two actors side by side, one of them with a slice of the input
    m = Model(13, rng)
    x = m.input(1, 12, name="obs")
    std = m.node("Sqrt", m.node("Add", m.weight(1, 12, low=0.1), m.constant(np.float32(1e-2))))
    x = m.node("Clip", m.node("Div", m.node("Sub", x, m.weight(1, 12)), std), m.constant(np.float32(-5)), m.constant(np.float32(5)))
    heads = []
    for width, begin in [(3, 0), (2, 4)]:
        part = m.node("Slice", x, m.ints(begin), m.ints(12), m.ints(1))
        h = m.node("Elu", m.node("Gemm", part, m.weight(8, 12 - begin), m.weight(8), transB=1))
        heads.append(m.node("Gemm", h, m.weight(width, 8), m.weight(width), transB=1))
    yield "Two actors", m.output(m.node("Concat", *heads, axis=1))


def random_graph(rng):
    """A chain of random operators on [1, n] values, every value a candidate operand for the next."""
    m = Model(int(rng.choice([13, 17, 18])), rng)
    width = int(rng.integers(3, 9))
    values = [m.input(1, width) for _ in range(int(rng.integers(1, 4)))]
    for _ in range(int(rng.integers(3, 15))):
        a, b = (values[int(rng.integers(len(values)))] for _ in range(2))
        kind = rng.choice(["unary", "binary", "dense", "softmax", "norm", "mix", "safe_div"])
        if kind == "unary":
            y = m.node(str(rng.choice(["Elu", "Relu", "Tanh", "Sigmoid", "Softplus", "Neg", "LeakyRelu", "Abs"])), a)
        elif kind == "binary":
            y = m.node(str(rng.choice(["Add", "Sub", "Mul", "Min", "Max"])), a, b)
            y = m.node("Tanh", y)
        elif kind == "dense":
            y = m.node("Gemm", a, m.weight(width, width), m.weight(width), transB=int(rng.integers(2)))
        elif kind == "softmax":
            y = m.node("Softmax", a, axis=-1)
        elif kind == "norm":
            c = m.node("Sub", a, m.node("ReduceMean", a, m.ints(-1)) if m.opset >= 18 else m.node("ReduceMean", a, axes=[-1]))
            y = m.node("Mul", c, m.weight(1, width))
        elif kind == "mix":
            left, right = m.node("Split", m.node("Concat", a, b, axis=1), m.ints(width - 1, width + 1), outputs=2, axis=1)
            y = m.node("Concat", left, m.node("Gather", right, m.ints(int(rng.integers(width))), axis=1), axis=1)
        else:
            y = m.node("Div", a, m.node("Add", m.node("Mul", b, b), m.constant(np.float32(1))))
        values.append(y)
    return m.output(values[-1], values[-2])


def to_double(model):
    """The model in float64, so that differences are not drowned in rounding."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype in (np.float32, np.float16):
            tensor.CopyFrom(numpy_helper.from_array(array.astype(np.float64), tensor.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                array = numpy_helper.to_array(attribute.t)
                if array.dtype == np.float32:
                    attribute.t.CopyFrom(numpy_helper.from_array(array.astype(np.float64)))
        if node.op_type == "Cast":
            for attribute in node.attribute:
                if attribute.name == "to" and attribute.i == FLOAT:
                    attribute.i = TensorProto.DOUBLE
        if node.op_type == "Constant":
            for attribute in list(node.attribute):
                if attribute.name == "value_floats":
                    values = np.array(attribute.floats, dtype=np.float64)
                    node.attribute.remove(attribute)
                    node.attribute.append(helper.make_attribute("value", numpy_helper.from_array(values)))
    for value in list(model.graph.input) + list(model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    return model


def shape_of(value):
    return [d.dim_value or 1 for d in value.type.tensor_type.shape.dim]


def check(name, model, evaluate, session_of, rng, directory):
    path = os.path.join(directory, "model.onnx")
    onnx.save(model, path)
    names = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in names]
    feeds = {value.name: rng.normal(size=shape_of(value)).astype(np.float32) for value in inputs}
    flat = os.path.join(directory, "inputs.f64")
    np.concatenate([feeds[value.name].ravel() for value in inputs]).astype(np.float64).tofile(flat)
    run = subprocess.run([evaluate, path, flat], capture_output=True, text=True)
    if run.returncode != 0:
        return [f"{name}: {run.stderr.strip()}"]
    ours = json.loads(run.stdout)

    problems = []
    expected = session_of(path).run(None, feeds)
    for i, value in enumerate(expected):
        # 1e-5 of the size of the output: what ONNX Runtime itself is good for in float32
        tolerance = 1e-5 * max(1.0, float(np.abs(value).max()))
        for precision in ("float", "double"):
            got = np.array(ours[precision][i])
            if got.shape != value.ravel().shape:
                problems.append(f"{name}: output {i} has {got.size} numbers, ONNX Runtime {value.size}")
            elif not np.abs(got - value.ravel()).max() <= tolerance:
                problems.append(f"{name}: output {i} in {precision} off by {np.abs(got - value.ravel()).max():.2e}")

    if name in VALUES_ONLY:
        return problems
    reference = ReferenceEvaluator(to_double(model))
    point = {key: value.astype(np.float64) for key, value in feeds.items()}
    step = 1e-6
    for j, value in enumerate(inputs):
        width = point[value.name].size
        columns = [[] for _ in expected]
        for c in range(width):
            ends = []
            for sign in (1, -1):
                moved = dict(point)
                moved[value.name] = point[value.name].copy()
                moved[value.name].ravel()[c] += sign * step
                ends.append(reference.run(None, moved))
            for i in range(len(expected)):
                columns[i].append((np.asarray(ends[0][i], np.float64) - ends[1][i]).ravel() / (2 * step))
        for i in range(len(expected)):
            difference = np.array(columns[i]).T
            exact = np.array(ours["jacobian"][i][j]).reshape(difference.shape)
            # h = 1e-6: rounding 1e-16/h = 1e-10, truncation h², and h where an Elu's kink is crossed
            worst = np.abs(exact - difference).max()
            if not worst <= 1e-5 * max(1.0, float(np.abs(difference).max())):
                problems.append(f"{name}: Jacobian of output {i} by input {j} off by {worst:.2e}")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--eval", help="the onnx_eval program")
    parser.add_argument("--policies", help="folder with .onnx files to compare as well")
    parser.add_argument("--corpus", help="write the models here and stop")
    parser.add_argument("--random", type=int, default=40, help="number of random graphs")
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    models = [(name, model.build()) for name, model in cases(rng)]

    if arguments.corpus:
        os.makedirs(arguments.corpus, exist_ok=True)
        for name, model in models:
            stem = "".join(c if c.isalnum() else "_" for c in name.lower())
            onnx.save(model, os.path.join(arguments.corpus, stem + ".onnx"))
        return 0

    try:
        import onnxruntime
    except ImportError as error:
        print(f"skipped: {error}; make the environment with tools/setup/venv.sh ort")
        return SKIP
    onnxruntime.set_default_logger_severity(3)
    models += [(f"random graph {i}", random_graph(rng).build()) for i in range(arguments.random)]
    if arguments.policies and os.path.isdir(arguments.policies):
        for file in sorted(os.listdir(arguments.policies)):
            if file.endswith(".onnx"):
                models.append((file, onnx.load(os.path.join(arguments.policies, file))))
    else:
        print("no reference policies here; random graphs only")

    def session_of(path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    problems = []
    with tempfile.TemporaryDirectory() as directory:
        for name, model in models:
            problems += check(name, model, arguments.eval, session_of, rng, directory)
    for problem in problems:
        print(problem)
    print(f"{len(models)} models, {len(problems)} problems (onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__})")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
