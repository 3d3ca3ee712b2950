#include "onnx_frontend/node_order.h"

#include <fmt/format.h>

#include <map>
#include <queue>

namespace ingot {
namespace {

std::unexpected<Failure> malformed(const OnnxNode& node, std::string message) {
  Diagnostic diagnostic;
  diagnostic.code = "invalid-model";
  diagnostic.node = node.label;
  diagnostic.op = node.op_type;
  diagnostic.message = std::move(message);
  return fail(ExitCode::Malformed, std::move(diagnostic));
}

class Ordering {
 public:
  Ordering(const std::vector<OnnxNode>& nodes, const std::set<std::string>& given)
      : nodes_(nodes), given_(given) {}

  Result<NodeOrder> run(const std::vector<std::string>& wanted) {
    INGOT_RETURN_IF_ERROR(find_makers());
    INGOT_RETURN_IF_ERROR(find_edges());
    for (const std::string& name : wanted) {
      if (!given_.contains(name) && !maker_.contains(name)) {
        return fail(ExitCode::Malformed, "invalid-model",
                    fmt::format("output '{}' is not defined by any node", name));
      }
    }
    INGOT_ASSIGN(const std::vector<std::size_t> order, sort());
    const std::vector<bool> used = find_used(order, wanted);
    NodeOrder result;
    for (const std::size_t node : order) {
      (used[node] ? result.nodes : result.unused).push_back(node);
    }
    return result;
  }

 private:
  Result<void> find_makers() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const std::string& output : nodes_[i].outputs) {
        if (output.empty()) continue;
        if (given_.contains(output) || !maker_.emplace(output, i).second) {
          return malformed(nodes_[i], fmt::format("value '{}' is defined twice", output));
        }
      }
    }
    return {};
  }

  Result<void> find_edges() {
    makers_of_.resize(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const std::string& name : names_read(nodes_[i])) {
        if (const auto maker = maker_.find(name); maker != maker_.end()) {
          makers_of_[i].insert(maker->second);
        } else if (!given_.contains(name)) {
          return malformed(nodes_[i], fmt::format("input '{}' is not defined", name));
        }
      }
    }
    return {};
  }

  // Always the first node of the file whose inputs are there.
  Result<std::vector<std::size_t>> sort() const {
    std::vector<std::size_t> missing(nodes_.size());
    std::vector<std::vector<std::size_t>> readers(nodes_.size());
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      missing[i] = makers_of_[i].size();
      if (missing[i] == 0) ready.push(i);
      for (const std::size_t maker : makers_of_[i]) readers[maker].push_back(i);
    }
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      const std::size_t node = ready.top();
      ready.pop();
      order.push_back(node);
      for (const std::size_t reader : readers[node]) {
        if (--missing[reader] == 0) ready.push(reader);
      }
    }
    if (order.size() == nodes_.size()) return order;
    return malformed(*cycle_start(missing), "needs its own result: the graph has a cycle");
  }

  // Walks back along unfinished inputs until a node comes twice: that one is on the cycle.
  const OnnxNode* cycle_start(const std::vector<std::size_t>& missing) const {
    std::size_t node = 0;
    while (missing[node] == 0) ++node;
    std::set<std::size_t> seen;
    while (seen.insert(node).second) {
      for (const std::size_t maker : makers_of_[node]) {
        if (missing[maker] == 0) continue;
        node = maker;
        break;
      }
    }
    return &nodes_[node];
  }

  std::vector<bool> find_used(const std::vector<std::size_t>& order,
                              const std::vector<std::string>& wanted) const {
    std::vector<bool> used(nodes_.size(), false);
    for (const std::string& name : wanted) {
      if (const auto maker = maker_.find(name); maker != maker_.end()) used[maker->second] = true;
    }
    for (std::size_t i = order.size(); i-- > 0;) {
      if (!used[order[i]]) continue;
      for (const std::size_t maker : makers_of_[order[i]]) used[maker] = true;
    }
    return used;
  }

  const std::vector<OnnxNode>& nodes_;
  const std::set<std::string>& given_;
  std::map<std::string, std::size_t> maker_;
  std::vector<std::set<std::size_t>> makers_of_;
};

}  // namespace

std::set<std::string> names_read(const OnnxNode& node) {
  std::set<std::string> names;
  for (const std::string& input : node.inputs) {
    if (!input.empty()) names.insert(input);
  }
  for (const OnnxAttribute& attribute : node.attributes) {
    for (const auto& graph : attribute.graphs) names.merge(outer_names(*graph));
  }
  return names;
}

std::set<std::string> outer_names(const OnnxGraph& graph) {
  std::set<std::string> defined;
  for (const OnnxValueInfo& input : graph.inputs) defined.insert(input.name);
  for (const OnnxTensor& tensor : graph.initializers) defined.insert(tensor.name);
  for (const std::string& sparse : graph.sparse_initializers) defined.insert(sparse);
  for (const OnnxNode& node : graph.nodes) {
    defined.insert(node.outputs.begin(), node.outputs.end());
  }
  std::set<std::string> outer;
  const auto read = [&](const std::string& name) {
    if (!name.empty() && !defined.contains(name)) outer.insert(name);
  };
  for (const OnnxNode& node : graph.nodes) {
    for (const std::string& name : names_read(node)) read(name);
  }
  for (const OnnxValueInfo& output : graph.outputs) read(output.name);
  return outer;
}

Result<NodeOrder> order_nodes(const std::vector<OnnxNode>& nodes,
                              const std::set<std::string>& given,
                              const std::vector<std::string>& wanted) {
  return Ordering(nodes, given).run(wanted);
}

}  // namespace ingot
