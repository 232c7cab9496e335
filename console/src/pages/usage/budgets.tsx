import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { cadre } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, SelectInput, TextInput } from '../../ui/field.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Badge } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { useAddressWords } from '../parts/address-words.ts'
import { Options } from '../parts/options.tsx'
import { Meter } from './meter.tsx'
import type { Budget } from '../../../../sdk/src/types.ts'

const dollars = new Intl.NumberFormat(undefined, { style: 'currency', currency: 'USD', maximumFractionDigits: 4 })
const scopes = { project: 'This project', agent: 'One agent', api_key: 'One API key', organization: 'The organization' }
const periods = { hour: 'an hour', day: 'a day', month: 'a month', total: 'in all' }

/** Limits of what may be spent: real ones, which calls wait at. */
export function Budgets({ project }: { project: string }) {
  const [url, setUrl] = useAddressWords()
  const queries = useQueryClient()
  const budgets = useQuery({
    queryKey: ['budgets', project],
    queryFn: () => cadre.budgets.list(project, { limit: 100 }).page(),
    refetchInterval: 15_000,
  })
  const again = () => queries.invalidateQueries({ queryKey: ['budgets', project] })
  const remove = useMutation({
    mutationFn: (id: string) => cadre.budgets.delete(project, id),
    onSuccess: () => {
      tell('The budget is gone')
      return again()
    },
  })
  const add = (
    <Button kind="primary" onClick={() => setUrl({ panel: 'budget' })}>
      Set a budget
    </Button>
  )
  return (
    <>
      {budgets.isPending && <Skeleton label="Loading budgets" />}
      <ErrorBox error={budgets.error} retry={() => void budgets.refetch()} />
      <ErrorBox error={remove.error} />
      {budgets.data?.total === 0 && (
        <EmptyState title="No budgets" actions={add}>
          A budget bounds dollars or tokens of an agent, a key, a project or the organization. A call reserves what it
          may use before it begins; where there is no room, tasks wait instead of spending.
        </EmptyState>
      )}
      {budgets.data && budgets.data.total > 0 && (
        <>
          <div className="mb-3">{add}</div>
          <ul className="grid gap-2 lg:grid-cols-2">
            {budgets.data.items.map((budget) => (
              <Item key={budget.id} {...budget} isBusy={remove.isPending} onRemove={() => remove.mutate(budget.id)} />
            ))}
          </ul>
        </>
      )}
      <NewBudget
        project={project}
        isOpen={url.panel === 'budget'}
        close={() => setUrl({ panel: undefined })}
        onMade={() => void again()}
      />
    </>
  )
}

function Item({ onRemove, isBusy, ...budget }: Budget & { onRemove: () => void; isBusy: boolean }) {
  const { scope, subject, period, max_cost_usd, max_tokens, spent, reserved, resets_at } = budget
  const bars = [
    ...(max_cost_usd === null
      ? []
      : [{ unit: 'cost', spent: spent.cost_usd, limit: max_cost_usd, of: dollars.format }]),
    ...(max_tokens === null
      ? []
      : [{ unit: 'tokens', spent: spent.tokens, limit: max_tokens, of: (value: number) => value.toLocaleString() }]),
  ]
  return (
    <li className="rounded-md border border-line p-3">
      <div className="flex flex-wrap items-start justify-between gap-2">
        <div>
          <div className="text-sm font-medium">
            {scopes[scope]}, {periods[period]}
          </div>
          <CopyId id={subject} />
        </div>
        <Button onClick={onRemove} disabled={isBusy} aria-label={`Remove the budget of ${subject}`}>
          Remove
        </Button>
      </div>
      {bars.map(({ unit, spent: used, limit, of }) => {
        const share = limit === 0 ? 1 : Math.min(1, used / limit)
        return (
          <div key={unit} className="mt-2 text-sm">
            <div className="flex flex-wrap justify-between gap-2">
              <span className="tabular-nums">
                {of(used)} of {of(limit)}
              </span>
              {share >= 1 ? (
                <Badge tone="bad">spent: tasks wait</Badge>
              ) : share >= 0.8 ? (
                <Badge tone="warn">{Math.round(share * 100)} %</Badge>
              ) : (
                <span className="text-soft">{Math.round(share * 100)} %</span>
              )}
            </div>
            <Meter share={share} isWide />
          </div>
        )
      })}
      <p className="mt-2 text-xs text-soft">
        {reserved.tokens > 0 && `${reserved.tokens.toLocaleString()} tokens are reserved by calls under way. `}
        {resets_at === null ? 'Never begins anew.' : 'Begins anew '}
        {resets_at !== null && <Time at={resets_at} />}
      </p>
    </li>
  )
}

function NewBudget({
  project,
  isOpen,
  close,
  onMade,
}: {
  project: string
  isOpen: boolean
  close: () => void
  onMade: () => void
}) {
  const [scope, setScope] = useState<Budget['scope']>('project')
  const [subject, setSubject] = useState('')
  const [cost, setCost] = useState('')
  const [tokens, setTokens] = useState('')
  const [period, setPeriod] = useState<Budget['period']>('month')
  const needsSubject = scope === 'agent' || scope === 'api_key'
  const make = useMutation({
    mutationFn: () =>
      cadre.budgets.create(project, {
        scope,
        period,
        ...(needsSubject ? { subject: subject.trim() } : {}),
        ...(cost === '' ? {} : { max_cost_usd: Number(cost) }),
        ...(tokens === '' ? {} : { max_tokens: Number(tokens) }),
      }),
    onSuccess: () => {
      tell('The budget counts from now on')
      onMade()
      close()
    },
  })
  const reason =
    cost === '' && tokens === ''
      ? 'Set dollars, tokens or both'
      : needsSubject && subject.trim() === ''
        ? 'Say which one it limits'
        : undefined
  return (
    <Dialog title="Set a budget" isOpen={isOpen} close={close}>
      <form
        className="space-y-4"
        onSubmit={(event) => {
          event.preventDefault()
          if (!reason) make.mutate()
        }}
      >
        <ErrorBox error={make.error} />
        <Field label="What it limits">
          <SelectInput value={scope} onChange={(event) => setScope(event.target.value as Budget['scope'])}>
            <Options of={scopes} />
          </SelectInput>
        </Field>
        {needsSubject && (
          <Field label="Identifier" hint={scope === 'agent' ? 'agent_…' : 'key_…'}>
            <TextInput value={subject} onChange={(event) => setSubject(event.target.value)} />
          </Field>
        )}
        <div className="grid gap-x-3 sm:grid-cols-3">
          <Field label="US dollars">
            <TextInput
              inputMode="decimal"
              value={cost}
              onChange={(event) => setCost(event.target.value)}
              placeholder="25"
            />
          </Field>
          <Field label="Tokens">
            <TextInput
              inputMode="numeric"
              value={tokens}
              onChange={(event) => setTokens(event.target.value)}
              placeholder="any"
            />
          </Field>
          <Field label="Period">
            <SelectInput value={period} onChange={(event) => setPeriod(event.target.value as Budget['period'])}>
              <Options of={periods} />
            </SelectInput>
          </Field>
        </div>
        <div className="flex justify-end">
          <Button kind="primary" type="submit" reason={reason} disabled={make.isPending}>
            Set budget
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
