// Statements of one scheduled kernel written again with the names of another.
#pragma once

#include "compiler/kernel/kernel.h"

namespace ingot {

// `Names` has expression(ExprId), variable(index), array(index) and parameter(index), which give
// the new ones, and store(StoreStatement), which gives the statement in the place of a store.
template <typename Names>
class StatementRenamer {
 public:
  explicit StatementRenamer(const Names& names) : names_(names) {}

  [[nodiscard]] Block renamed(const Block& block) const {
    Block out;
    for (const Statement& statement : block) {
      out.push_back(std::visit([&](const auto& node) { return renamed(node); }, statement.node));
    }
    return out;
  }

 private:
  Statement renamed(const ForStatement& loop) const {
    return {ForStatement{names_.variable(loop.variable), renamed(loop.body)}};
  }
  Statement renamed(const IfStatement& branch) const {
    return {IfStatement{names_.expression(branch.condition), renamed(branch.body)}};
  }
  Statement renamed(const StoreStatement& store) const { return names_.store(store); }
  Statement renamed(const SetRegisterStatement& set) const {
    return {SetRegisterStatement{names_.array(set.array), names_.expression(set.element),
                                 names_.expression(set.lane), names_.expression(set.value)}};
  }
  Statement renamed(const PrefetchStatement& prefetch) const {
    return {PrefetchStatement{names_.parameter(prefetch.parameter),
                              names_.expression(prefetch.address)}};
  }
  Statement renamed(const BarrierStatement&) const { return {BarrierStatement{}}; }

  const Names& names_;
};

}  // namespace ingot
