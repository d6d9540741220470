"""A recommendation as the JSON of `kopt log recommend`."""

from __future__ import annotations

import math
from dataclasses import asdict

from kbs.experience.ranking.recommend import Advice, Similar
from kbs.experience.ranking.similarity import Situation
from kopt.cli.log.schemas import RecommendationData, RecommendData, SimilarData, WarnedData


def recommend_data(asked: Situation, advice: Advice) -> RecommendData:
    """From the internal form."""
    return RecommendData(
        asked={name: dict(value) if name == "dims" else value for name, value in asdict(asked).items()},
        recommended=[
            RecommendationData(
                method=one.method,
                speedup=one.gain,
                successes=one.successes,
                others=one.others,
                factors=dict(one.factors),
                records=[_similar(record) for record in one.records],
                failed=[_similar(record) for record in one.failed],
            )
            for one in advice.recommended
        ],
        failures=[
            WarnedData(
                method=one.method,
                failures=one.failures,
                successes=one.successes,
                records=[_similar(record) for record in one.records],
            )
            for one in advice.warnings
        ],
        why=advice.why,
        considered=advice.considered,
    )


def _similar(one: Similar) -> SimilarData:
    known = one.gain is not None and math.isfinite(one.gain)
    return SimilarData(
        reference=one.reference,
        similarity=one.similarity,
        factors=dict(one.factors),
        outcome=one.outcome.value,
        speedup=one.gain if known else None,
    )
