import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { budgetWarning_percent } from '#contract/resources/budget-window.ts'
import { api } from '../../api/client.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { Field, SelectInput, TextInput } from '../../ui/forms/field.tsx'
import { Form } from '../../ui/forms/form.tsx'
import { tell } from '../../ui/toast.tsx'
import { Options } from '../parts/options.tsx'
import { budgetPeriods, budgetScopes } from './budget-labels.ts'
import { SubjectName, SubjectPicker } from './budget-subject.tsx'
import type { Budget } from '#sdk/types.ts'

const inField = (value: number | null | undefined): string => (value == null ? '' : String(value))
const limitOf = (text: string): number | null => (text.trim() === '' ? null : Number(text))

/** A new budget, or other limits of one that there is: what it is about stays. */
export function BudgetForm({
  project,
  budget,
  mayNot,
  close,
  onSaved,
}: {
  project: string
  budget: Budget | undefined
  mayNot: string | undefined
  close: () => void
  onSaved: () => void
}) {
  const [scope, setScope] = useState<Budget['scope']>(budget?.scope ?? 'project')
  const [subject, setSubject] = useState(budget?.subject ?? '')
  const [cost, setCost] = useState(inField(budget?.max_cost_usd))
  const [tokens, setTokens] = useState(inField(budget?.max_tokens))
  const [sandbox, setSandbox] = useState(inField(budget?.max_sandbox_seconds))
  const [period, setPeriod] = useState<Budget['period']>(budget?.period ?? 'month')
  const [warn, setWarn] = useState(String(budget?.warn_percent ?? budgetWarning_percent))
  const needsSubject = !budget && (scope === 'agent' || scope === 'api_key')
  const save = useMutation({
    mutationFn: () => {
      const limits = {
        max_cost_usd: limitOf(cost),
        max_tokens: limitOf(tokens),
        max_sandbox_seconds: limitOf(sandbox),
        period,
        warn_percent: Number(warn),
      }
      return budget
        ? api.budgets.update(project, budget.id, limits)
        : api.budgets.create(project, { ...limits, scope, ...(needsSubject ? { subject: subject.trim() } : {}) })
    },
    onSuccess: () => {
      tell(budget ? 'Budget saved' : 'Budget created')
      onSaved()
      close()
    },
  })
  const reason = disabledReason({ cost, tokens, sandbox, warn, lacksSubject: needsSubject && subject.trim() === '' })
  return (
    <Dialog title={budget ? 'Change the budget' : 'Set a budget'} isOpen close={close} refused={mayNot}>
      <Form
        action={budget ? 'Save budget' : 'Set budget'}
        reason={reason}
        error={save.error}
        isBusy={save.isPending}
        submit={() => save.mutate()}
      >
        {budget ? (
          <div className="text-sm text-soft">
            <div className="mb-1 flex flex-wrap items-center gap-x-2">
              {budgetScopes[scope]}: <SubjectName project={project} budget={budget} />
            </div>
            What is spent still counts, unless the period changes. Waiting tasks continue if there is room.
          </div>
        ) : (
          <Field label="What it limits">
            <SelectInput
              value={scope}
              onChange={(event) => {
                setScope(event.target.value as Budget['scope'])
                setSubject('')
              }}
            >
              <Options of={budgetScopes} />
            </SelectInput>
          </Field>
        )}
        {!budget && <SubjectPicker project={project} scope={scope} value={subject} onChange={setSubject} />}
        <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
          <Field field="max_cost_usd" label="US dollars">
            <TextInput
              inputMode="decimal"
              value={cost}
              onChange={(event) => setCost(event.target.value)}
              placeholder="any"
            />
          </Field>
          <Field field="max_tokens" label="Tokens">
            <TextInput
              inputMode="numeric"
              value={tokens}
              onChange={(event) => setTokens(event.target.value)}
              placeholder="any"
            />
          </Field>
          <Field field="max_sandbox_seconds" label="Sandbox seconds">
            <TextInput
              inputMode="numeric"
              value={sandbox}
              onChange={(event) => setSandbox(event.target.value)}
              placeholder="any"
            />
          </Field>
          <Field label="Period">
            <SelectInput value={period} onChange={(event) => setPeriod(event.target.value as Budget['period'])}>
              <Options of={budgetPeriods} />
            </SelectInput>
          </Field>
        </div>
        <Field
          field="warn_percent"
          label="Warn at, in percent"
          hint="Sends the event budget.warning once per period. Subscribe a webhook to it for alerts."
        >
          <TextInput inputMode="numeric" value={warn} onChange={(event) => setWarn(event.target.value)} />
        </Field>
      </Form>
    </Dialog>
  )
}

/** What still keeps a budget from being saved. */
function disabledReason({
  cost,
  tokens,
  sandbox,
  warn,
  lacksSubject,
}: {
  cost: string
  tokens: string
  sandbox: string
  warn: string
  lacksSubject: boolean
}): string | undefined {
  const limits = [limitOf(cost), limitOf(tokens), limitOf(sandbox)]
  const percent = Number(warn)
  if (limits.every((limit) => limit === null)) return 'Set dollars, tokens or sandbox seconds'
  if (limits.some((limit) => limit !== null && !(limit >= 0))) return 'A limit is a number'
  if (!(Number.isInteger(percent) && percent >= 1 && percent <= 100)) return 'Warn at 1 to 100 percent'
  return lacksSubject ? 'Choose what it limits' : undefined
}
