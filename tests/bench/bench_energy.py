"""Energy a token: each public model foretold from the others' measurements, per machine."""

from energy_fit import Coefficients, fit_energy, leave_one_model_out, mean_absolute_error

from tests.conftest import SHARED
from tests.floor.public_energy import public_points
from tracescope.models import load_hardware


def main() -> None:
    """Print the fit, its error on the points it saw, and the errors of the models left out."""
    file = SHARED / "reference" / "measured.json"
    if not file.exists():
        print(f"skipped: {file} is absent")
        return
    for machine, points in public_points(file).items():
        fit, left_out = fit_energy(points), leave_one_model_out(points)
        own = sum(abs(fit.joules(point) / point.joules - 1) for point in points) / len(points)
        print(
            f"{machine}: {len(points)} points, {fit.memory_pj_per_bit:.1f} pJ/bit, {fit.flop_pj:.2f} pJ/FLOP, "
            f"{fit.static_w:.0f} W; mean error seen {own:.1%}, left out {mean_absolute_error(left_out):.1%}"
        )
        energy = load_hardware(machine).energy
        if energy is not None:
            mid = Coefficients(energy.memory_pj_per_bit[1], energy.flop_pj[1], energy.static_w[1])
            error = sum(abs(mid.joules(point) / point.joules - 1) for point in points) / len(points)
            print(f"  preset, mid: mean error {error:.1%}")
        for one in left_out:
            print(f"  {one.point.model:36} {one.point.joules:7.2f} J a step, foretold {one.error:+.1%}")


if __name__ == "__main__":
    main()
