import { useState, type ReactNode } from 'react'
import { isObject } from '../../../../contract/src/merge-patch.ts'
import { approvalTimeouts } from '../../../../contract/src/task-lifecycle.ts'
import { Field, SelectInput, TextArea, TextInput } from '../../ui/field.tsx'
import { ListInput } from './list-input.tsx'
import { ModelField } from './model-field.tsx'
import { ToolsField } from './tools-field.tsx'

type Config = Record<string, unknown>
type NumberField = readonly [path: string, label: string, hint: string]

const usual: readonly NumberField[] = [
  ['temperature', 'Temperature', 'From 0; higher is freer.'],
  ['max_tokens', 'Tokens of an answer', 'At most.'],
  ['max_steps', 'Steps of a task', 'At most.'],
  ['timeout_seconds', 'Seconds of a task', 'At most.'],
  ['max_concurrent_tasks', 'Tasks at the same time', 'Those beyond it wait.'],
]
const budget: readonly NumberField[] = [
  ['budget.max_cost_usd', 'Dollars of a task', 'At most, of models whose price is known.'],
  ['budget.max_tokens', 'Tokens of a task', 'At most, in and out together.'],
  ['budget.max_tool_calls', 'Calls of tools of a task', 'At most; 0 allows none.'],
]
const patience: readonly NumberField[] = [
  ['retry.max_attempts', 'Tries of a call of a model', '5 where nothing is said.'],
  ['retry.initial_delay_seconds', 'Seconds before the second try', 'Doubled each time; 0.5 where nothing is said.'],
  [
    'retry.max_delay_seconds',
    'Seconds between two tries',
    'At most, however often it is doubled; 30 where nothing is said.',
  ],
  ['approval_timeout_seconds', 'Seconds that an approval waits', '7 days where nothing is said.'],
]
const further = ['fallback_models', 'budget', 'retry', 'approval_timeout_seconds', 'approval_on_timeout']
const timeoutWords: Record<(typeof approvalTimeouts)[number], string> = {
  reject: 'the call is rejected',
  cancel: 'the task is canceled',
}

/** What of a configuration has a field of its own; all else is kept, and is there as JSON. */
export function ConfigFields({
  project_id,
  config,
  fault,
  change,
}: {
  project_id: string
  config: Config
  /** What is wrong with a field, by its path from the body on. */
  fault: (field: string) => ReactNode
  change: (config: Config) => void
}) {
  const set = (path: string, value: unknown): void => change(withMember(config, path.split('.'), value))
  const text = (path: string): string => {
    const value = path.split('.').reduce<unknown>((of, name) => (isObject(of) ? of[name] : undefined), config)
    return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  }
  const numbers = (fields: readonly NumberField[]): ReactNode =>
    fields.map(([path, label, hint]) => (
      <Field key={path} label={label} hint={hint} fault={fault(`config.${path}`)}>
        <TextInput
          type="number"
          step="any"
          value={text(path)}
          onChange={({ target: { value } }) => set(path, value === '' ? undefined : Number(value))}
        />
      </Field>
    ))
  // As it was when it came to be shown: it does not close under who empties a field.
  const [isFurther] = useState(() => further.some((name) => config[name] !== undefined))
  return (
    <>
      <ModelField
        project_id={project_id}
        value={text('model')}
        fault={fault('config.model')}
        onChange={(model) => set('model', model)}
      />
      <Field label="Instructions" fault={fault('config.system_prompt')} hint="What it is told before every task.">
        <TextArea
          rows={10}
          value={text('system_prompt')}
          onChange={(event) => set('system_prompt', event.target.value || undefined)}
        />
      </Field>
      <ToolsField
        project_id={project_id}
        chosen={Array.isArray(config.tools) ? (config.tools as string[]) : []}
        policies={isObject(config.tool_policies) ? (config.tool_policies as Record<string, string>) : {}}
        fault={fault('config.tools') ?? fault('config.tool_policies')}
        change={({ tools, tool_policies }) => {
          const changed = tools ? withMember(config, ['tools'], tools) : config
          change(tool_policies ? withMember(changed, ['tool_policies'], tool_policies) : changed)
        }}
      />
      <div className="grid grid-cols-1 gap-4 sm:grid-cols-2">{numbers(usual)}</div>
      <details open={isFurther}>
        <summary className="min-h-6 font-medium">Budget of a task, other models, approvals</summary>
        <div className="mt-3 grid gap-4 sm:grid-cols-2">
          {numbers(budget)}
          <Field
            label="Models that take over"
            fault={fault('config.fallback_models')}
            hint="Where the model fails for good, in this order, with commas between."
          >
            <ListInput
              value={Array.isArray(config.fallback_models) ? config.fallback_models.map(String) : []}
              onChange={(models) => set('fallback_models', models.length === 0 ? undefined : models)}
            />
          </Field>
          {numbers(patience)}
          <Field label="When nobody answers an approval" fault={fault('config.approval_on_timeout')}>
            <SelectInput
              value={text('approval_on_timeout')}
              onChange={(event) => set('approval_on_timeout', event.target.value || undefined)}
            >
              <option value="">the call is rejected (default)</option>
              {approvalTimeouts.map((what) => (
                <option key={what} value={what}>
                  {timeoutWords[what]}
                </option>
              ))}
            </SelectInput>
          </Field>
        </div>
      </details>
    </>
  )
}

/** A configuration with another value at a path; undefined takes the member out, and an object that has none left with it. */
function withMember(config: Config, [name = '', ...rest]: readonly string[], value: unknown): Config {
  const { [name]: before, ...others } = config
  const now = rest.length === 0 ? value : withMember(isObject(before) ? before : {}, rest, value)
  if (now === undefined || (isObject(now) && Object.keys(now).length === 0)) return others
  // Where it stood: what is shown as JSON keeps its order.
  return { ...config, [name]: now }
}
