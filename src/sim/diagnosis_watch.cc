#include "diagnosis_watch.h"

namespace weir::inline v0::sim {
namespace {
constexpr std::size_t kActors = 10;  // as many as a gateway looks at
}

DiagnosisWatch::DiagnosisWatch(World& world, std::size_t services)
    : world_(world), patients_(services) {}

void DiagnosisWatch::second() {
  for (std::uint32_t i = 0; i < patients_.size(); ++i) {
    const AdmissionController* controller = world_.controller(i);
    if (controller == nullptr) continue;
    const ReplicaPool* replicas = world_.replicas(i);
    Patient& patient = patients_[i];
    const policy::ScopeSecond seen =
        patient.seconds.next(controller->scope_stats(ScopeId::kFirst, world_.now()),
                             std::chrono::seconds(1), 0, controller->top_actors(kActors),
                             replicas == nullptr ? ReplicaSpread{} : replicas->spread());
    world_.recorder().diagnosed(i, patient.diagnoser.on_second(seen).cause);
  }
}

}  // namespace weir::inline v0::sim
