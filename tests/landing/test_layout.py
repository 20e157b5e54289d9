from penstock.landing import layout
from penstock.lsn import Lsn


def test_a_window_lies_under_its_pipeline_its_positions_and_its_attempt() -> None:
    folder = layout.window_folder("shop", Lsn.parse("0/16B3748"), Lsn.parse("16/B374D848"), "20261121t091500000_3f9a")

    assert folder == "shop/windows/00000000016B3748-00000016B374D848/20261121t091500000_3f9a"
    assert layout.window_file(folder, 16385, 2) == f"{folder}/16385.2.parquet"


def test_windows_sort_by_position_as_text() -> None:
    positions = [Lsn(9), Lsn(16), Lsn(1 << 32), Lsn((1 << 64) - 2)]
    names = [layout.window_folder("p", lsn, Lsn(lsn + 1), "a") for lsn in positions]

    assert names == sorted(names)


def test_a_copy_and_a_run_have_folders_of_their_own() -> None:
    assert layout.copy_file(layout.copy_folder("shop", "c1"), "16385-0") == "shop/copies/c1/16385-0.parquet"
    assert layout.run_folder("shop", "a1") == "shop/runs/a1"
    assert layout.plan_file("shop", "a1") == "shop/runs/a1/plan.json"
    assert layout.result_file("shop", "a1") == "shop/runs/a1/result.json"
