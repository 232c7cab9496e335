import { Plus, X } from 'lucide-react'
import { useId, useState } from 'react'
import { bounds } from '#contract/core/limits.ts'
import type { ModelProvider } from '#sdk/types.ts'
import { formatCount } from '../../../format.ts'
import { Button, IconButton } from '../../../ui/button.tsx'
import { Field, TextInput } from '../../../ui/forms/field.tsx'

type Prices = NonNullable<ModelProvider['own']>['prices']
type Price = Prices[string]

/** What a provider charges for, in the words of the form; those after the first two may be left empty. */
const rates = {
  input: 'Input',
  output: 'Output',
  cached_input: 'Cached input',
  cache_write: 'Cache write',
} as const
type Rate = keyof typeof rates
const isOptional = (rate: Rate): boolean => rate === 'cached_input' || rate === 'cache_write'

/** A price as it is typed. */
interface Row extends Record<Rate, string> {
  key: number
  model: string
  /** The price of long calls, which is kept as it is. */
  long: Price['long']
}

let made = 0
function rowOf(model: string, price?: Price): Row {
  const typed = (rate: Rate): string => (price?.[rate] === undefined ? '' : String(price[rate]))
  return {
    key: made++,
    model,
    input: typed('input'),
    output: typed('output'),
    cached_input: typed('cached_input'),
    cache_write: typed('cache_write'),
    long: price?.long,
  }
}

/** What models of a provider cost, by the provider's names of them. */
export function PricesForm({
  prices,
  models,
  isBusy,
  submit,
}: {
  prices: Prices
  /** Names that the provider lists, to choose from. */
  models: readonly string[]
  isBusy: boolean
  /** Null where no price is left. */
  submit: (prices: Prices | null) => void
}) {
  const [rows, setRows] = useState<Row[]>(() => {
    const given = Object.entries(prices).map(([model, price]) => rowOf(model, price))
    return given.length > 0 ? given : [rowOf('')]
  })
  const listed = useId()
  const reason = reasonAgainst(rows)
  const change = (key: number, part: Partial<Row>): void =>
    setRows(rows.map((row) => (row.key === key ? { ...row, ...part } : row)))
  return (
    <form
      className="space-y-4"
      onSubmit={(event) => {
        event.preventDefault()
        if (reason === undefined) submit(pricesOf(rows))
      }}
    >
      <p className="text-soft">
        US dollars per million tokens. New calls are charged at these prices, and budgets count them. Models without a
        price here have the built-in one, if it is known.
      </p>
      <datalist id={listed}>
        {models.map((model) => (
          <option key={model} value={model} />
        ))}
      </datalist>
      {rows.map((row, at) => (
        <fieldset
          key={row.key}
          aria-label={row.model || `Price ${at + 1}`}
          className="grid grid-cols-2 items-end gap-2 border-b border-line pb-4 sm:grid-cols-[2fr_1fr_1fr_1fr_1fr_auto]"
        >
          <div className="max-sm:col-span-2">
            <Field label="Model">
              <TextInput
                value={row.model}
                list={listed}
                spellCheck={false}
                autoComplete="off"
                onChange={({ target }) => change(row.key, { model: target.value })}
              />
            </Field>
          </div>
          {(Object.keys(rates) as Rate[]).map((rate) => (
            <Field key={rate} label={rates[rate]}>
              <TextInput
                value={row[rate]}
                inputMode="decimal"
                autoComplete="off"
                placeholder={rate === 'cached_input' ? row.input : ''}
                onChange={({ target }) => change(row.key, { [rate]: target.value })}
              />
            </Field>
          ))}
          <IconButton
            label={`Remove the price of ${row.model || 'this model'}`}
            className="max-sm:col-span-2 max-sm:justify-self-end"
            onClick={() => setRows(rows.filter(({ key }) => key !== row.key))}
          >
            <X size={16} aria-hidden />
          </IconButton>
          {row.long && (
            <p className="col-span-full text-sm text-soft">
              Calls of more than {formatCount(row.long.above_input_tokens)} input tokens keep their own price, which the
              API sets.
            </p>
          )}
        </fieldset>
      ))}
      <div className="flex flex-wrap justify-between gap-2">
        <Button
          reason={
            rows.length < bounds.model_provider_prices
              ? undefined
              : `A provider has at most ${formatCount(bounds.model_provider_prices)} prices`
          }
          onClick={() => setRows([...rows, rowOf('')])}
        >
          <Plus size={14} aria-hidden /> Add a model
        </Button>
        <Button kind="primary" type="submit" reason={reason} disabled={isBusy}>
          Save prices
        </Button>
      </div>
    </form>
  )
}

/** A row that was never filled counts for nothing. */
const isBlank = (row: Row): boolean =>
  [row.model, ...Object.keys(rates).map((rate) => row[rate as Rate])].every((text) => text.trim() === '')

function reasonAgainst(rows: readonly Row[]): string | undefined {
  const filled = rows.filter((row) => !isBlank(row))
  const names = filled.map(({ model }) => model.trim())
  if (names.includes('')) return 'Enter the model of each price'
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) return `${twice} has two prices`
  for (const row of filled)
    for (const [rate, label] of Object.entries(rates) as [Rate, string][]) {
      const text = row[rate].trim()
      if (text === '' && isOptional(rate)) continue
      if (text === '') return `Enter the price of ${row.model.trim()}: ${label.toLowerCase()}`
      if (!/^\d+(\.\d+)?$/.test(text) || Number(text) > bounds.model_price_usd)
        return `${label} of ${row.model.trim()} is a number from 0 to ${formatCount(bounds.model_price_usd)}`
    }
  return undefined
}

function pricesOf(rows: readonly Row[]): Prices | null {
  const given = rows
    .filter((row) => !isBlank(row))
    .map((row): [string, Price] => {
      const { input, output, cached_input, cache_write, long } = row
      const optional = (rate: 'cached_input' | 'cache_write', text: string): Partial<Price> =>
        text.trim() === '' ? {} : { [rate]: Number(text) }
      return [
        row.model.trim(),
        {
          input: Number(input),
          output: Number(output),
          ...optional('cached_input', cached_input),
          ...optional('cache_write', cache_write),
          ...(long ? { long } : {}),
        },
      ]
    })
  return given.length === 0 ? null : Object.fromEntries(given)
}
