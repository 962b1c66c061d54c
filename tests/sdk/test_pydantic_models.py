"""pydantic's models as arguments, results and answers."""

from __future__ import annotations

from decimal import Decimal

import attrs
import pytest
from pydantic import BaseModel, Field, model_validator

from amplifier import Agent
from amplifier.testing import AutoModel
from amplifier_sdk import tool
from amplifier_sdk.convert import to_json
from amplifier_sdk.errors import OutputMisfitError
from amplifier_sdk.output_schema import OutputSchema


class Item(BaseModel):  # type: ignore[explicit-any]  # pydantic's own
    name: str
    price: Decimal = Field(gt=0)


class Invoice(BaseModel):  # type: ignore[explicit-any]  # pydantic's own
    items: list[Item]
    customer: str = "anonymous"

    @model_validator(mode="after")
    def has_items(self) -> Invoice:
        if not self.items:
            raise ValueError("an invoice has items")
        return self


class Node(BaseModel):  # type: ignore[explicit-any]  # pydantic's own
    name: str
    below: list[Node] = []


@attrs.frozen
class Mail:
    invoice: Invoice
    tree: Node | None = None


@tool
async def send(invoice: Invoice, copies: int = 1) -> Invoice:
    """Send an invoice."""
    assert isinstance(invoice, Invoice)
    return invoice.model_copy(update={"customer": f"{invoice.customer} x {copies}"})


def other_invoice() -> type[BaseModel]:
    class Item(BaseModel):  # type: ignore[explicit-any]  # pydantic's own
        weight: int

    class Invoice(BaseModel):  # type: ignore[explicit-any]  # pydantic's own
        items: list[Item]

    return Invoice


ITEMS = [{"name": "tea", "price": "2.50"}]


async def test_a_tool_takes_and_returns_a_model() -> None:
    result = await send.execute({"invoice": {"items": ITEMS}, "copies": 2})

    assert result.output == {"items": ITEMS, "customer": "anonymous x 2"}
    definitions = send.input_schema["$defs"]
    assert isinstance(definitions, dict)
    assert list(definitions) == ["Invoice.Item"]


@pytest.mark.parametrize(
    ("invoice", "says"),
    [
        ({"items": [{"name": "tea"}]}, "items[0].price: missing"),
        ({"items": [{"name": "tea", "price": 0}]}, "price"),
        ({"items": []}, "an invoice has items"),
        ("tea", "expected an object"),
    ],
)
async def test_what_does_not_fit_is_named_with_its_path(
    invoice: object, says: str
) -> None:
    result = await send.execute({"invoice": invoice})  # type: ignore[dict-item]  # wrong on purpose

    assert not result.success
    assert says in str(result.error)


async def test_model_of_another_library_says_itself_what_is_wrong() -> None:
    class Even:
        """What a class needs to be a model."""

        def __init__(self, number: int) -> None:
            self.number = number

        @classmethod
        def model_json_schema(cls, *, ref_template: str) -> dict[str, object]:
            return {"type": "integer"}

        @classmethod
        def model_validate(cls, value: int, /) -> Even:
            if value % 2:
                raise ValueError(f"{value} is odd")
            return cls(value)

        def model_dump(self, *, mode: str) -> int:
            return self.number

    schema = OutputSchema.of(Even)

    assert to_json(schema.read('{"value": 4}')) == 4
    with pytest.raises(OutputMisfitError, match="- value: 3 is odd"):
        schema.read('{"value": 3}')


def test_models_stand_inside_other_types_and_refer_to_themselves() -> None:
    mail = OutputSchema.of(Mail)

    read = mail.read(
        '{"invoice": {"items": [{"name": "tea", "price": 1}]},'
        ' "tree": {"name": "a", "below": [{"name": "b"}]}}'
    )

    assert isinstance(read, Mail)
    assert read.invoice.items[0].price == 1
    assert read.tree is not None
    assert read.tree.below[0].name == "b"
    with pytest.raises(OutputMisfitError, match=r"tree\.below\[0\]\.name: missing"):
        mail.read(
            '{"invoice": {"items": [{"name": "tea", "price": 1}]},'
            ' "tree": {"name": "a", "below": [{}]}}'
        )


def test_models_of_one_name_have_each_their_own_parts() -> None:
    both = OutputSchema.of(Invoice | other_invoice())

    assert isinstance(both.read('{"value": {"items": [{"weight": 3}]}}'), BaseModel)
    assert isinstance(
        both.read('{"value": {"items": [{"name": "tea", "price": 1}]}}'), Invoice
    )


async def test_an_agent_answers_with_a_model() -> None:
    result = await Agent(AutoModel(), output=Node).run("Hi")

    assert isinstance(result.output, Node)
    assert to_json(result.output) == result.output.model_dump(mode="json")
