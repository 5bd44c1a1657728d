"""scikit-learn's base classes with types: it has none of its own, and a name that is not there must be seen.

To a type checker these are small classes with what the estimators use; when the program runs they are
scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

if TYPE_CHECKING:

    class BaseEstimator:
        """What every estimator of scikit-learn has."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def get_metadata_routing(self) -> Any: ...
        def set_fit_request(
            self, *, sample_weight: bool | str | None = ..., exposure: bool | str | None = ...
        ) -> Self: ...
        def set_score_request(self, *, sample_weight: bool | str | None = ...) -> Self: ...
        def __sklearn_tags__(self) -> Any: ...
        def _repr_html_(self) -> str: ...
        def _repr_mimebundle_(self, **more: Any) -> dict[str, str]: ...
        def __getstate__(self) -> dict[str, Any]: ...
        def __setstate__(self, state: dict[str, Any]) -> None: ...

    class ClassifierMixin:
        """What makes an estimator a classifier."""

    class RegressorMixin:
        """What makes an estimator a regressor."""

    def available_if(check: Callable[[Any], bool]) -> Callable[[F], F]:
        """Return a decorator of methods that are there only if the check says so."""
        ...
else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.metaestimators import available_if

__all__ = ["BaseEstimator", "ClassifierMixin", "RegressorMixin", "available_if"]
