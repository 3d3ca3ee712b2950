// Decides which values are placed in buffers and which are computed inside their readers.
//
// 1. A reduce or contraction is a *core*: its kernel also computes the elementwise values that
//    follow it, as long as only the last of them is read elsewhere (the region's root).
// 2. Other computed values are inlined if everything that reads them ends in one kernel; movement
//    (views, reshapes) and short arithmetic of positions are always inlined.
// 3. A concatenation is a buffer whose parts are written in place where the part allows it.
// 4. Values around convolutions get channels in blocks of 16 and the zero halo their readers need.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/check.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/winograd.h"

namespace ingot {
namespace {

constexpr std::int64_t kChannelBlock = 16;
// At most this part (1 / n) of a blocked tensor is written by parts that start inside of a block.
constexpr std::int64_t kCrossingShare = 4;
// Addresses this far apart share a set of the first cache; a tile of rows then has more lines than
// the set.
constexpr std::int64_t kSetBytes = 4096, kLineBytes = 64, kRowsOfTile = 8;
// Most distinct buffers one kernel may read; the artifact format allows 32 parameters.
constexpr std::size_t kMostLeaves = 24;
// Longest chain of values computed inside of their reader.
constexpr std::size_t kMostDepth = 100;
// Most nodes after a core that its kernel takes in.
constexpr std::size_t kMostEpilogueNodes = 64;
constexpr int kMostPositionOperations = 8;

template <typename Op>
bool is(const Node& node) {
  return std::holds_alternative<Op>(node.op);
}

bool is_core(const Node& node) { return is<ReduceNodeOp>(node) || is<ContractOp>(node); }
bool is_elementwise(const Node& node) { return is<MapOp>(node) || is<CastOp>(node); }
bool is_movement(const Node& node) {
  return is<ViewOp>(node) || is<ReshapeOp>(node) || is<IotaOp>(node);
}

// Whether some input element is read by more than one output element.
bool reads_repeatedly(const Node& node, const Graph& graph) {
  return is<ViewOp>(node) && element_count(node.shape) > element_count(graph[node.inputs[0]].shape);
}

class Planner {
 public:
  Planner(const Graph& graph, const Target& target, const PlanOptions& options)
      : graph_(graph),
        target_(target),
        options_(options),
        count_(graph.nodes.size()),
        largest_tile_(largest_winograd_tile(graph)) {}

  Result<Plan> run() {
    plan_.graph = &graph_;
    find_users();
    find_constants();
    declare_io();
    grow_regions();
    choose_placed();
    demand_halos();
    place_concatenations();
    place_values();
    choose_layouts();
    order_kernels();
    return std::move(plan_);
  }

 private:
  const Node& node(std::uint32_t index) const { return graph_.nodes[index]; }

  void find_users() {
    live_.assign(count_, false);
    users_.assign(count_, {});
    pinned_.assign(count_, false);
    for (const GraphOutput& output : graph_.outputs) live_[output.value.index] = true;
    for (const GraphState& state : graph_.states) {
      live_[state.state.index] = true;
      live_[state.next.index] = true;
    }
    for (std::size_t i = count_; i-- > 0;) {
      if (!live_[i]) continue;
      for (ValueId input : graph_.nodes[i].inputs) live_[input.index] = true;
    }
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (is<InputOp>(node(i))) live_[i] = true;  // the interface does not shrink
      if (!live_[i]) continue;
      std::set<ValueId> distinct(node(i).inputs.begin(), node(i).inputs.end());
      for (ValueId input : distinct) users_[input.index].push_back(i);
    }
    for (const GraphOutput& output : graph_.outputs) pinned_[output.value.index] = true;
    kept_.assign(count_, false);
    for (const GraphState& state : graph_.states) {
      if (state.entry) {
        kept_[moved_by(state.next).index] = true;
      } else {
        pinned_[state.next.index] = true;
      }
    }
  }

  // What a value is, seen through movement. The kernel that writes into a ring only copies it, and
  // so never reads the ring itself.
  ValueId moved_by(ValueId value) const {
    while (is<ViewOp>(graph_[value]) || is<ReshapeOp>(graph_[value])) {
      value = graph_[value].inputs[0];
    }
    return value;
  }

  void find_constants() {
    constant_.assign(count_, false);
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Node& n = node(i);
      if (is<ConstantOp>(n)) {
        constant_[i] = true;
      } else if (is<ViewOp>(n) || is<ReshapeOp>(n)) {
        constant_[i] = constant_[n.inputs[0].index];
      }
    }
  }

  std::uint32_t add_buffer(PlanBuffer buffer) {
    plan_.buffers.push_back(std::move(buffer));
    return static_cast<std::uint32_t>(plan_.buffers.size() - 1);
  }

  std::uint32_t add_buffer(BufferKind kind, DType dtype, const Shape& shape, std::uint32_t io = 0) {
    PlanBuffer buffer;
    buffer.kind = kind;
    buffer.dtype = dtype;
    buffer.shape = shape;
    buffer.layout = Layout::row_major(static_cast<int>(shape.size()));
    buffer.io = io;
    return add_buffer(std::move(buffer));
  }

  void place(ValueId value, std::uint32_t buffer, std::vector<std::int64_t> offset = {}) {
    if (offset.empty()) offset.assign(graph_[value].shape.size(), 0);
    plan_.placed[value] = Placement{buffer, std::move(offset)};
  }

  bool is_state(ValueId value) const {
    return std::ranges::any_of(graph_.states,
                               [&](const GraphState& state) { return state.state == value; });
  }

  int camera_of(ValueId value) const {
    for (const GraphCamera& camera : graph_.cameras) {
      if (camera.input == value) return camera.camera;
    }
    return -1;
  }

  // Slots: inputs, then states, then outputs, each in order of declaration.
  void declare_io() {
    auto declare = [&](ValueId value, BufferKind kind, std::optional<Tensor> initial = {}) {
      PlanIo io;
      io.name = std::get<InputOp>(graph_[value].op).name;
      io.kind = kind;
      io.dtype = graph_[value].dtype;
      io.shape = graph_[value].shape;
      io.camera = camera_of(value);
      io.initial = std::move(initial);
      plan_.io.push_back(std::move(io));
      place(value, add_buffer(kind, graph_[value].dtype, graph_[value].shape,
                              static_cast<std::uint32_t>(plan_.io.size() - 1)));
    };
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (is<InputOp>(node(i)) && !is_state(ValueId{i})) declare(ValueId{i}, BufferKind::Input);
    }
    for (const GraphState& state : graph_.states) {
      declare(state.state, BufferKind::State, state.initial);
    }
    for (const GraphOutput& output : graph_.outputs) {
      const Node& n = graph_[output.value];
      plan_.io.push_back(PlanIo{output.name, BufferKind::Output, n.dtype, n.shape, -1});
    }
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (!live_[i] || !constant_[i]) continue;
      // Weights seen through movement become constants of their own, to be packed as they are read.
      const bool is_operand = std::ranges::any_of(
          users_[i], [&](std::uint32_t user) { return is<ContractOp>(node(user)); });
      if (!is<ConstantOp>(node(i)) && !is_operand) continue;
      const std::uint32_t buffer = add_buffer(BufferKind::Constant, node(i).dtype, node(i).shape);
      plan_.buffers[buffer].constant = ValueId{i};
      place(ValueId{i}, buffer);
    }
  }

  // --- 1. regions around cores

  // The region of a core grows by its lowest reader while that is elementwise and of one shape; it
  // is closed whenever only the newest node is read from outside.
  void grow_region(std::uint32_t core) {
    std::set<std::uint32_t> region{core};
    std::set<std::uint32_t> pending(users_[core].begin(), users_[core].end());
    std::uint32_t newest = core;
    std::vector<std::uint32_t> closed{core};
    bool inner_pinned = false;
    while (options_.fuse && !pending.empty() && region.size() < kMostEpilogueNodes) {
      inner_pinned = inner_pinned || pinned_[newest] || kept_[newest];
      const std::uint32_t next = *pending.begin();
      const Node& n = node(next);
      if (inner_pinned || !is_elementwise(n) || region_[next] != kNoRegion ||
          n.shape != node(core).shape) {
        break;
      }
      pending.erase(next);
      region.insert(next);
      newest = next;
      for (std::uint32_t user : users_[next]) pending.insert(user);
      const bool is_closed = std::ranges::all_of(region, [&](std::uint32_t member) {
        return member == newest || std::ranges::all_of(users_[member], [&](std::uint32_t user) {
                 return region.contains(user);
               });
      });
      if (is_closed && leaves_of(region) <= kMostLeaves)
        closed.assign(region.begin(), region.end());
    }
    const std::uint32_t root = closed.back();
    for (std::uint32_t member : closed) region_[member] = root;
    placed_[root] = true;
    const std::set<std::uint32_t> members(closed.begin(), closed.end());
    for (const std::uint32_t member : closed) add_leaves(node(member), members, leaves_[root]);
  }

  // What a kernel reads for a node: single constants are in the code, movement is looked through.
  void add_leaves(const Node& n, const std::set<std::uint32_t>& inside,
                  std::set<ValueId>& leaves) const {
    for (const ValueId input : n.inputs) {
      if (inside.contains(input.index)) continue;
      const ValueId source = moved_by(input);
      const Node& read = graph_[source];
      if (is<IotaOp>(read) || (is<ConstantOp>(read) && element_count(read.shape) == 1)) continue;
      leaves.insert(source);
    }
  }

  std::size_t leaves_of(const std::set<std::uint32_t>& region) const {
    std::set<ValueId> leaves;
    for (std::uint32_t member : region) {
      for (ValueId input : node(member).inputs) {
        if (!region.contains(input.index)) leaves.insert(input);
      }
    }
    return leaves.size();
  }

  void grow_regions() {
    region_.assign(count_, kNoRegion);
    placed_.assign(count_, false);
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (live_[i] && is_core(node(i)) && region_[i] == kNoRegion) grow_region(i);
    }
  }

  // --- 2. everything else

  static constexpr std::uint32_t kNoRegion = 0xFFFFFFFF;
  static constexpr std::uint32_t kManyHomes = 0xFFFFFFFE;

  // Few operations on positions alone: cheaper to repeat in each reader than to read.
  void find_positions() {
    constexpr int kTooMany = kMostPositionOperations + 1;
    positions_.assign(count_, kTooMany);
    for (std::uint32_t i = 0; i < count_; ++i) {
      const Node& n = node(i);
      const auto* map = std::get_if<MapOp>(&n.op);
      const bool is_cheap =
          map != nullptr &&
          (map->op == ScalarOp::Add || map->op == ScalarOp::Sub || map->op == ScalarOp::Mul);
      const bool is_constant =
          constant_[i] && element_count(graph_[moved_by(ValueId{i})].shape) == 1;
      if (is<IotaOp>(n) || is_constant) {
        positions_[i] = 0;
      } else if (is_cheap || is<CastOp>(n) || (is_movement(n) && !n.inputs.empty())) {
        int operations = is_movement(n) ? 0 : 1;
        for (const ValueId input : n.inputs) operations += positions_[input.index];
        positions_[i] = std::min(operations, kTooMany);
      }
    }
  }

  bool is_position(std::uint32_t i) const {
    return options_.fuse && !pinned_[i] && !kept_[i] && positions_[i] <= kMostPositionOperations;
  }

  bool must_place(std::uint32_t i) const {
    const Node& n = node(i);
    if (is<ConcatOp>(n)) return true;
    if (is_movement(n)) return false;
    if (!options_.fuse || pinned_[i] || kept_[i]) return true;
    for (std::uint32_t user : users_[i]) {
      const Node& u = node(user);
      if (is<ContractOp>(u) || is<ConcatOp>(u) || reads_repeatedly(u, graph_)) return true;
      if (is<GatherOp>(u) && u.inputs[0].index == i) return true;
      // A camera's memory is in no cache: places that are known before can be asked for ahead.
      if (is<GatherOp>(u) && u.inputs[1].index == i && camera_of(u.inputs[0]) >= 0) return true;
      if (is_movement(u) && feeds_contraction_[user]) return true;
    }
    return false;
  }

  // Values that a contraction reads directly or through movement.
  void find_contraction_operands() {
    feeds_contraction_.assign(count_, false);
    for (std::uint32_t i = static_cast<std::uint32_t>(count_); i-- > 0;) {
      feeds_contraction_[i] = std::ranges::any_of(users_[i], [&](std::uint32_t user) {
        return is<ContractOp>(node(user)) || (is_movement(node(user)) && feeds_contraction_[user]);
      });
    }
  }

  // Nodes between an inlined value and the result of its kernel.
  std::size_t depth_below(std::uint32_t i) const {
    std::size_t depth = 0;
    for (std::uint32_t user : users_[i]) depth = std::max(depth, depth_[user]);
    return depth + 1;
  }

  // The one kernel that all readers of `i` belong to, or kManyHomes.
  std::uint32_t home_of_readers(std::uint32_t i) const {
    std::uint32_t home = kNoRegion;
    for (std::uint32_t user : users_[i]) {
      const std::uint32_t candidate = region_[user] != kNoRegion ? region_[user] : home_[user];
      if (home != kNoRegion && candidate != home) return kManyHomes;
      home = candidate;
    }
    return home == kNoRegion ? kManyHomes : home;
  }

  void choose_placed() {
    find_contraction_operands();
    find_positions();
    home_.assign(count_, kManyHomes);
    depth_.assign(count_, 0);
    for (std::uint32_t i = static_cast<std::uint32_t>(count_); i-- > 0;) {
      const Node& n = node(i);
      if (!live_[i] || constant_[i] || is<InputOp>(n) || region_[i] != kNoRegion) continue;
      home_[i] = home_of_readers(i);
      depth_[i] = depth_below(i);
      bool here = must_place(i) || depth_[i] > kMostDepth;
      std::set<ValueId> leaves;  // of its kernel with it
      const bool is_read = !is_movement(n) && !is_position(i);
      if (!here && is_read) {
        here = home_[i] == kManyHomes;
        if (!here) {
          leaves = leaves_[home_[i]];
          leaves.erase(ValueId{i});
          add_leaves(n, {}, leaves);
          here = leaves.size() > kMostLeaves;
        }
      }
      if (here) {
        placed_[i] = true;
        home_[i] = i;
        depth_[i] = 0;
        if (!is<ConcatOp>(n)) add_leaves(n, {}, leaves_[i]);  // each part has a kernel of its own
      } else if (is_read) {
        leaves_[home_[i]] = std::move(leaves);
      }
    }
  }

  // --- halos

  // Reads outside an operand of a contraction count as 0. Such an operand is placed, with a zero
  // halo; a contraction then needs no gates. Operands seen through a reshape are placed too: their
  // addresses would cost divisions in the inner loop.
  void demand_halos() {
    halo_.resize(count_);
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (!live_[i] || !is<ContractOp>(node(i))) continue;
      const auto& contract = std::get<ContractOp>(node(i).op);
      for (std::size_t k = 0; k < node(i).inputs.size(); ++k) {
        const ValueId operand = node(i).inputs[k];
        if (constant_[operand.index]) continue;
        const Shape& shape = graph_[operand].shape;
        Halo halo{std::vector<std::int64_t>(shape.size(), 0),
                  std::vector<std::int64_t>(shape.size(), 0)};
        bool leaves = false;
        for (std::size_t d = 0; d < shape.size(); ++d) {
          const AffineIndex& index = contract.operands[k][d];
          const IndexBounds range = bounds(index, contract.extents);
          if (range.max < range.min || index.divisor != 1) continue;
          halo.before[d] = std::max<std::int64_t>(0, -range.min);
          const std::int64_t last = std::max(range.max, last_read_of_tiles(i, k, d));
          halo.after[d] = std::max<std::int64_t>(0, last - (shape[d] - 1));
          leaves = leaves || halo.before[d] > 0 || halo.after[d] > 0;
        }
        if ((leaves && options_.layouts) || through_reshape(operand)) {
          if (!is<InputOp>(graph_[operand])) placed_[operand.index] = true;
        }
        if (leaves && options_.layouts) merge_halo(operand.index, halo);
        if (sums_rows(contract, contract.operands[k])) row_sums_.insert(operand);
      }
    }
  }

  // Whether elements next to each other are terms of one sum, and tiles walk through rows together.
  static bool sums_rows(const ContractOp& op, const std::vector<AffineIndex>& operand) {
    std::int64_t rows = 1;
    for (const AffineIndex& index : operand) {
      for (const AffineIndex::Term& term : index.terms) {
        if (term.axis < op.output_axes) rows *= op.extents[static_cast<std::size_t>(term.axis)];
      }
    }
    return rows >= kRowsOfTile && operand.back().terms.size() == 1 &&
           operand.back().terms[0].axis >= op.output_axes;
  }

  // What the tiles of a Winograd convolution read at most in rows and columns; below 0 elsewhere.
  std::int64_t last_read_of_tiles(std::uint32_t i, std::size_t operand, std::size_t d) const {
    const auto& op = std::get<ContractOp>(node(i).op);
    if (operand != 0 || d < 2 || op.output_axes != 4 || op.extents.size() != 7 ||
        op.extents[5] != 3 || op.extents[6] != 3 || node(i).dtype != DType::F32 ||
        node(i).inputs.size() != 2 || node(i).strict ||
        graph_[node(i).inputs[0]].shape.size() != 4) {
      return -1;
    }
    const AffineIndex& index = op.operands[0][d];
    const int axis = static_cast<int>(d);
    if (index.terms.size() != 2 || index.coefficient_of(axis) != 1 ||
        index.coefficient_of(axis + 3) != 1) {
      return -1;
    }
    const int tile = plan_winograd({op.extents[4], op.extents[1], op.extents[2], op.extents[3]},
                                   target_, largest_tile_)
                         .tile;
    if (tile == 0) return -1;
    return index.offset + winograd_tiles(tile, op.extents[d]) * tile + 1;
  }

  bool through_reshape(ValueId operand) const {
    const Node* n = &graph_[operand];
    while (is_movement(*n) && !n->inputs.empty() && !placed_[operand.index]) {
      if (is<ReshapeOp>(*n)) return true;
      operand = n->inputs[0];
      n = &graph_[operand];
    }
    return false;
  }

  struct Halo {
    std::vector<std::int64_t> before, after;
  };

  void merge_halo(std::uint32_t value, const Halo& halo) {
    Halo& merged = halo_[value];
    if (merged.before.empty()) {
      merged = halo;
      return;
    }
    for (std::size_t d = 0; d < halo.before.size(); ++d) {
      merged.before[d] = std::max(merged.before[d], halo.before[d]);
      merged.after[d] = std::max(merged.after[d], halo.after[d]);
    }
  }

  // --- 3. concatenations

  // The slot that an output or next state gives to the value itself, if it can be written there.
  std::uint32_t caller_buffer(ValueId value) {
    if (plan_.placed.contains(value)) return kNone;
    for (const GraphState& state : graph_.states) {
      if (state.next != value || state.entry || taken_.contains(&state)) continue;
      taken_.insert(&state);
      return add_buffer(BufferKind::NextState, graph_[value].dtype, graph_[value].shape,
                        plan_.buffers[plan_.placed.at(state.state).buffer].io);
    }
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const GraphOutput& output = graph_.outputs[i];
      if (output.value != value || taken_.contains(&output)) continue;
      taken_.insert(&output);
      return add_buffer(BufferKind::Output, graph_[value].dtype, graph_[value].shape,
                        output_slot(i));
    }
    return kNone;
  }

  std::uint32_t output_slot(std::size_t output) const {
    return static_cast<std::uint32_t>(plan_.io.size() - graph_.outputs.size() + output);
  }

  std::uint32_t scratch(ValueId value) {
    const std::uint32_t given = caller_buffer(value);
    if (given != kNone) return given;
    return add_buffer(BufferKind::Scratch, graph_[value].dtype, graph_[value].shape);
  }

  // A concatenation of the first parts alone, as in dense blocks, is the beginning of this one.
  void place_prefixes(std::uint32_t whole, const Placement& home) {
    const Node& all = node(whole);
    const int axis = std::get<ConcatOp>(all.op).axis;
    for (std::uint32_t i = 0; i < whole; ++i) {
      const auto* concat = std::get_if<ConcatOp>(&node(i).op);
      const std::vector<ValueId>& parts = node(i).inputs;
      if (!live_[i] || concat == nullptr || concat->axis != axis || pinned_[i] ||
          plan_.placed.contains(ValueId{i}) || parts.size() >= all.inputs.size()) {
        continue;
      }
      if (std::equal(parts.begin(), parts.end(), all.inputs.begin())) {
        plan_.placed[ValueId{i}] = home;
      }
    }
  }

  // Concatenations are placed last one first: one that comes before makes the copy for both.
  void copy_part(std::uint32_t concat, ValueId part, const Placement& destination) {
    for (auto& [later, copies] : part_copies_) {
      if (later <= concat) continue;
      std::erase_if(copies, [&](const PlanKernel& copy) {
        return copy.root == part && copy.destination == destination;
      });
    }
    part_copies_[concat].push_back(PlanKernel{"part", part, destination});
  }

  void place_concatenations() {
    for (std::uint32_t i = static_cast<std::uint32_t>(count_); i-- > 0;) {
      if (!live_[i] || !is<ConcatOp>(node(i))) continue;
      const ValueId value{i};
      if (!plan_.placed.contains(value)) place(value, scratch(value));
      const Placement home = plan_.placed.at(value);
      place_prefixes(i, home);
      const auto axis = static_cast<std::size_t>(std::get<ConcatOp>(node(i).op).axis);
      std::vector<std::int64_t> offset = home.offset;
      std::set<ValueId> seen;
      for (ValueId part : node(i).inputs) {
        const Placement destination{home.buffer, offset};
        offset[axis] += graph_[part].shape[axis];
        const auto known = plan_.placed.find(part);
        if (known != plan_.placed.end() && known->second == destination) continue;
        const bool inside = placed_[part.index] && !plan_.placed.contains(part) &&
                            !pinned_[part.index] && seen.insert(part).second;
        if (inside) {
          plan_.placed[part] = destination;
        } else {
          copy_part(i, part, destination);
        }
      }
    }
  }

  void place_values() {
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (live_[i] && placed_[i] && !plan_.placed.contains(ValueId{i})) {
        place(ValueId{i}, scratch(ValueId{i}));
      }
    }
  }

  // --- 4. layouts

  // A convolution's weights do not depend on the spatial axes of its output (of a transposed one:
  // on the leading axis of each dimension; the other is its phase).
  bool is_convolution(std::uint32_t i) const {
    if (!is<ContractOp>(node(i)) || node(i).shape.size() < 3 || node(i).inputs.size() != 2) {
      return false;
    }
    const auto& contract = std::get<ContractOp>(node(i).op);
    for (std::size_t d = 2; d < contract.output.size(); ++d) {
      const auto& terms = contract.output[d].terms;
      const auto leading = std::ranges::max_element(terms, {}, &AffineIndex::Term::coefficient);
      if (leading == terms.end()) continue;
      for (const AffineIndex& index : contract.operands[1]) {
        if (index.coefficient_of(leading->axis) != 0) return false;
      }
    }
    return true;
  }

  bool reads_blocked(ValueId value, std::size_t rank, std::int64_t channels,
                     std::set<ValueId>& seen) const {
    for (ValueId input : graph_[value].inputs) {
      if (!seen.insert(input).second) continue;
      const auto placement = plan_.placed.find(input);
      if (placement == plan_.placed.end()) {
        if (!is<ReshapeOp>(graph_[input]) && reads_blocked(input, rank, channels, seen))
          return true;
        continue;
      }
      const PlanBuffer& buffer = plan_.buffers[placement->second.buffer];
      if (wants_block_.contains(placement->second.buffer) && buffer.shape.size() == rank &&
          graph_[input].shape[1] == channels) {
        return true;
      }
    }
    return false;
  }

  // Parts that are copied into several concatenations decide as those that are computed in place.
  bool joins_blocked(const Node& concat) const {
    return std::ranges::any_of(concat.inputs, [&](ValueId part) {
      const auto placement = plan_.placed.find(part);
      return placement != plan_.placed.end() && wants_block_.contains(placement->second.buffer) &&
             plan_.buffers[placement->second.buffer].shape.size() == concat.shape.size();
    });
  }

  // Whether the region of `i` holds such a node.
  template <typename Test>
  bool has_core(std::uint32_t i, const Test& test) const {
    for (std::uint32_t member = 0; member <= i; ++member) {
      if (region_[member] == i && test(member)) return true;
    }
    return false;
  }

  // Whether maps read a placed value of the same shape whose channels are planes: blocks would be
  // gathered from as many lines of the cache as there are lanes.
  bool reads_planes(ValueId value) const {
    const Node& n = graph_[value];
    if (!is_elementwise(n)) return false;
    return std::ranges::any_of(n.inputs, [&](ValueId input) {
      const auto placement = plan_.placed.find(input);
      if (placement == plan_.placed.end()) return reads_planes(input);
      return graph_[input].shape == n.shape && !constant_[input.index] &&
             !wants_block_.contains(placement->second.buffer);
    });
  }

  // Its channels fill a block, and a convolution slides over them.
  bool read_by_convolution(std::uint32_t i) const {
    return node(i).shape[1] >= kChannelBlock &&
           std::ranges::any_of(users_[i], [&](std::uint32_t user) {
             return is_convolution(user) && node(user).inputs[0].index == i;
           });
  }

  bool wants_channel_block(std::uint32_t i) const {
    const Node& n = node(i);
    if (n.shape.size() < 3) return false;
    if (has_core(i, [&](std::uint32_t m) { return is_convolution(m); })) return true;
    if (is<ConcatOp>(n)) return joins_blocked(n);
    if (read_by_convolution(i) && !reads_planes(ValueId{i})) return true;
    if (is_movement(n) && !is<ViewOp>(n)) return false;
    std::set<ValueId> seen;
    return reads_blocked(ValueId{i}, n.shape.size(), n.shape[1], seen);
  }

  // Channels-last order without blocks: parts at any channel stay contiguous.
  static Layout channels_last(std::size_t rank) {
    Layout layout = Layout::row_major(static_cast<int>(rank));
    layout.order.clear();
    layout.order.push_back(0);
    for (std::size_t d = 2; d < rank; ++d) layout.order.push_back(static_cast<int>(d));
    layout.order.push_back(1);
    return layout;
  }

  void choose_layouts() {
    if (!options_.layouts) return;
    std::map<std::uint32_t, std::int64_t> crossing;  // elements of parts that start inside a block
    const auto count_crossing = [&](ValueId part, const Placement& placement) {
      const auto& offset = placement.offset;
      if (offset.size() >= 3 && offset[1] % kChannelBlock != 0) {
        crossing[placement.buffer] += element_count(graph_[part].shape);
      }
    };
    for (std::uint32_t i = 0; i < count_; ++i) {
      const auto placement = plan_.placed.find(ValueId{i});
      if (!live_[i] || constant_[i] || placement == plan_.placed.end()) continue;
      if (plan_.buffers[placement->second.buffer].kind != BufferKind::Scratch) continue;
      if (wants_channel_block(i)) wants_block_.insert(placement->second.buffer);
      count_crossing(ValueId{i}, placement->second);
      if (!halo_[i].before.empty()) give_halo(i, placement->second.buffer);
    }
    for (const auto& [concat, copies] : part_copies_) {
      for (const PlanKernel& copy : copies) count_crossing(copy.root, copy.destination);
    }
    for (std::uint32_t index : wants_block_) {
      PlanBuffer& buffer = plan_.buffers[index];
      // A few channels that are written one by one cost less than short vectors everywhere.
      const bool may_block = crossing[index] * kCrossingShare <= element_count(buffer.shape) &&
                             buffer.layout.before[1] == 0 && buffer.layout.after[1] == 0;
      Layout layout = may_block ? Layout::row_major(static_cast<int>(buffer.shape.size()))
                                : channels_last(buffer.shape.size());
      layout.before = buffer.layout.before;
      layout.after = buffer.layout.after;
      if (may_block && buffer.shape[1] > 1) {
        layout.block_dim = 1;
        layout.block = kChannelBlock;
      }
      buffer.layout = layout;
    }
    for (const ValueId value : row_sums_) part_rows(value);
  }

  // Rows whose starts would all compete for one set of the first cache get a line between them.
  void part_rows(ValueId value) {
    const auto placement = plan_.placed.find(value);
    if (placement == plan_.placed.end()) return;
    PlanBuffer& buffer = plan_.buffers[placement->second.buffer];
    Layout& layout = buffer.layout;
    const std::size_t last = buffer.shape.size() - 1;
    if (buffer.kind != BufferKind::Scratch || buffer.zero_before || layout.block_dim >= 0 ||
        layout.order.back() != static_cast<int>(last)) {
      return;
    }
    if (buffer.shape[last] * size_bytes(buffer.dtype) % kSetBytes == 0) {
      layout.after[last] = kLineBytes / size_bytes(buffer.dtype);
    }
  }

  // The value's own buffer takes the halo if it is scratch and the value fills it in all dimensions
  // that have one; otherwise readers get a copy with the halo (order_kernels).
  void give_halo(std::uint32_t value, std::uint32_t index) {
    PlanBuffer& buffer = plan_.buffers[index];
    const Placement& placement = plan_.placed.at(ValueId{value});
    for (std::size_t d = 0; d < buffer.shape.size(); ++d) {
      const bool has_halo = halo_[value].before[d] > 0 || halo_[value].after[d] > 0;
      if (has_halo && (placement.offset[d] != 0 || buffer.shape[d] != node(value).shape[d])) return;
    }
    for (std::size_t d = 0; d < buffer.shape.size(); ++d) {
      buffer.layout.before[d] = std::max(buffer.layout.before[d], halo_[value].before[d]);
      buffer.layout.after[d] = std::max(buffer.layout.after[d], halo_[value].after[d]);
    }
    buffer.zero_before = true;
  }

  // A part of a concatenation has neighbours where the whole has its halo.
  bool has_halo(std::uint32_t value) const {
    const Halo& halo = halo_[value];
    const Placement& placement = plan_.placed.at(ValueId{value});
    const PlanBuffer& buffer = plan_.buffers[placement.buffer];
    for (std::size_t d = 0; d < halo.before.size(); ++d) {
      if (halo.before[d] == 0 && halo.after[d] == 0) continue;
      if (placement.offset[d] != 0 || buffer.shape[d] != node(value).shape[d] ||
          buffer.layout.before[d] < halo.before[d] || buffer.layout.after[d] < halo.after[d]) {
        return false;
      }
    }
    return true;
  }

  // --- order

  void add_kernel(std::string name, ValueId root, Placement destination) {
    if (element_count(graph_[root].shape) == 0) return;
    plan_.kernels.push_back(PlanKernel{std::move(name), root, std::move(destination)});
  }

  void copy_with_halo(std::uint32_t value) {
    const Halo& halo = halo_[value];
    PlanBuffer buffer;
    buffer.kind = BufferKind::Scratch;
    buffer.dtype = node(value).dtype;
    buffer.shape = node(value).shape;
    buffer.layout = Layout::row_major(static_cast<int>(buffer.shape.size()));
    const PlanBuffer& source = plan_.buffers[plan_.placed.at(ValueId{value}).buffer];
    if (source.layout.block_dim == 1) {
      buffer.layout.block_dim = 1;
      buffer.layout.block = source.layout.block;
    } else {
      buffer.layout.order = source.layout.order;
    }
    buffer.layout.before = halo.before;
    buffer.layout.after = halo.after;
    buffer.zero_before = true;
    Placement placement{add_buffer(std::move(buffer)),
                        std::vector<std::int64_t>(node(value).shape.size(), 0)};
    for (std::uint32_t user : users_[value]) {
      if (!is<ContractOp>(node(user))) continue;
      plan_.operand_placed[{ValueId{region_[user]}, ValueId{value}}] = placement;
    }
    add_kernel("halo", ValueId{value}, placement);
  }

  void order_kernels() {
    for (std::uint32_t i = 0; i < count_; ++i) {
      if (!live_[i]) continue;
      const ValueId value{i};
      for (PlanKernel& copy : part_copies_[i]) {
        add_kernel(std::move(copy.name), copy.root, std::move(copy.destination));
      }
      if (placed_[i] && !is<ConcatOp>(node(i))) {
        add_kernel(node(i).source, value, plan_.placed.at(value));
      }
      if (!halo_[i].before.empty() && !has_halo(i)) copy_with_halo(i);
    }
    for (const GraphState& state : graph_.states) {
      if (state.entry || taken_.contains(&state)) continue;
      const Node& n = graph_[state.next];
      const std::uint32_t io = plan_.buffers[plan_.placed.at(state.state).buffer].io;
      add_kernel("next state", state.next,
                 Placement{add_buffer(BufferKind::NextState, n.dtype, n.shape, io),
                           std::vector<std::int64_t>(n.shape.size(), 0)});
    }
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
      const GraphOutput& output = graph_.outputs[i];
      if (taken_.contains(&output)) continue;
      const Node& n = graph_[output.value];
      add_kernel("output", output.value,
                 Placement{add_buffer(BufferKind::Output, n.dtype, n.shape, output_slot(i)),
                           std::vector<std::int64_t>(n.shape.size(), 0)});
    }
    // Last: everything else reads what was there before.
    for (const GraphState& state : graph_.states) {
      if (!state.entry) continue;
      add_kernel("ring", state.next, plan_.placed.at(state.state));
      if (element_count(graph_[state.next].shape) > 0) plan_.kernels.back().entry = state.entry;
    }
  }

  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  const Graph& graph_;
  const Target& target_;
  const PlanOptions& options_;
  const std::size_t count_;
  const int largest_tile_;  // of Winograd convolutions
  Plan plan_;
  std::vector<bool> live_, constant_, placed_;
  std::vector<bool> pinned_;                       // outputs and next states
  std::vector<bool> kept_;                         // placed in any case, wherever it is
  std::vector<std::vector<std::uint32_t>> users_;  // distinct, ascending
  std::vector<std::uint32_t> region_;              // root of the region around a core
  std::vector<bool> feeds_contraction_;
  std::vector<int> positions_;  // operations on positions that a value takes
  std::vector<std::size_t> depth_;
  std::map<std::uint32_t, std::set<ValueId>> leaves_;  // what a root's kernel reads, at most
  std::vector<std::uint32_t> home_;                    // kernel an inlined value belongs to
  std::vector<Halo> halo_;
  std::map<std::uint32_t, std::vector<PlanKernel>> part_copies_;  // of a concatenation
  std::set<const void*> taken_;          // outputs and states that have their buffer
  std::set<std::uint32_t> wants_block_;  // buffers
  std::set<ValueId> row_sums_;           // contractions sum over their rows
};

}  // namespace

Result<Plan> make_plan(const Graph& graph, const Target& target, const PlanOptions& options) {
  return Planner(graph, target, options).run();
}

}  // namespace ingot
