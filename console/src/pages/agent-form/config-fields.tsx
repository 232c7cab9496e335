import { formatCount } from '../../format.ts'
import { useState, type ReactNode } from 'react'
import { callSettingNotes, type CallSettingNote, type CallSettings } from '#contract/models/call-setting-notes.ts'
import { isObject } from '#contract/core/merge-patch.ts'
import {
  contextDefaults,
  maxTokensDefault,
  type Effort,
  type PromptCache,
  type ServiceTier,
} from '#contract/models/call-settings.ts'
import { approvalTimeouts } from '#contract/tasks/task-lifecycle.ts'
import { Field, SelectInput, TextArea, TextInput } from '../../ui/forms/field.tsx'
import { CallSettingHint } from './call-setting-hint.tsx'
import { ListInput } from './list-input.tsx'
import { ModelField } from './model-field.tsx'
import { useModelProviders } from './model-providers.ts'
import { SchemaField } from './schema-field.tsx'
import { ToolsField } from './tools-field.tsx'

type Config = Record<string, unknown>
type NumberField = readonly [path: string, label: string, hint: string]

const ofModel: readonly NumberField[] = [
  ['temperature', 'Temperature', '0 is the most predictable; higher values vary more.'],
  [
    'max_tokens',
    'Max output tokens',
    `Reasoning included. By default ${tokens(maxTokensDefault.plain)}, or ${tokens(maxTokensDefault.reasoning)} if the model reasons.`,
  ],
]
const usual: readonly NumberField[] = [
  ['max_steps', 'Max steps per task', 'A task that needs more fails.'],
  ['timeout_seconds', 'Task timeout, in seconds', 'From its start, waits included.'],
  ['max_concurrent_tasks', 'Concurrent tasks', 'Further tasks wait in the queue.'],
]
const budget: readonly NumberField[] = [
  ['budget.max_cost_usd', 'Max cost per task, in USD', 'Counts models with a known price.'],
  ['budget.max_tokens', 'Max tokens per task', 'Input and output together.'],
  ['budget.max_tool_calls', 'Max tool calls per task', '0 allows none.'],
]
const retries: readonly NumberField[] = [
  ['retry.max_attempts', 'Attempts per model call', 'Default: 5.'],
  ['retry.initial_delay_seconds', 'First retry delay, in seconds', 'Doubles with each retry. Default: 0.5.'],
  ['retry.max_delay_seconds', 'Max retry delay, in seconds', 'Default: 30.'],
  ['approval_timeout_seconds', 'Approval timeout, in seconds', 'Default: 7 days.'],
]
const context: readonly NumberField[] = [
  [
    'context.compact_at_tokens',
    'Tokens before compaction',
    `By default ${contextDefaults.compact_at_percent}% of the context window.`,
  ],
  [
    'context.keep_last_steps',
    'Recent steps to keep',
    `They stay word for word. By default ${contextDefaults.keep_last_steps}.`,
  ],
]
const further = ['fallback_models', 'budget', 'retry', 'approval_timeout_seconds', 'approval_on_timeout']
const effortWords: Record<Effort, string> = {
  none: 'None',
  minimal: 'Minimal',
  low: 'Low',
  medium: 'Medium',
  high: 'High',
  max: 'Max',
}
const tierWords: Record<ServiceTier, string> = {
  auto: 'Auto',
  default: 'Default',
  flex: 'Flex: cheaper, slower',
  priority: 'Priority: faster, at a higher price',
}
const cacheWords: Record<PromptCache, string> = { auto: 'On', off: 'Off' }
const timeoutWords: Record<(typeof approvalTimeouts)[number], string> = {
  reject: 'the call is rejected',
  cancel: 'the task is canceled',
}

const schemas = [
  {
    member: 'input_schema',
    label: 'Input schema',
    hint: 'JSON Schema of an object. With a schema, tasks take an object instead of text.',
  },
  {
    member: 'output_schema',
    label: 'Output schema',
    hint: 'JSON Schema of an object. With a schema, answers are data that matches it.',
  },
] as const
export type SchemaMember = (typeof schemas)[number]['member']

/** The call settings in a configuration, whose members may be any JSON. */
function callSettingsOf({
  model,
  fallback_models,
  temperature,
  max_tokens,
  effort,
  service_tier,
}: Config): CallSettings {
  const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
  const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)
  return {
    model: textOf(model),
    fallback_models: Array.isArray(fallback_models) ? fallback_models.map(String) : [],
    temperature: numberOf(temperature),
    max_tokens: numberOf(max_tokens),
    effort: textOf(effort),
    service_tier: textOf(service_tier),
  }
}

function tokens(count: number): string {
  return formatCount(count)
}

/** Members of a configuration with a field; all others are preserved, and editable as JSON. */
export function ConfigFields({
  project_id,
  config,
  fault,
  schemaFaults,
  onSchemaFault,
  change,
}: {
  project_id: string
  config: Config
  /** What is wrong with a field, by its path from the body on. */
  fault: (field: string) => ReactNode
  /** Why what is written as a schema is none, by the member. */
  schemaFaults: Readonly<Record<string, string | undefined>>
  onSchemaFault: (member: SchemaMember, fault: string | undefined) => void
  change: (config: Config) => void
}) {
  const { providers } = useModelProviders(project_id)
  const byDefault = providers.data?.find(({ is_default }) => is_default)
  const notes = callSettingNotes(callSettingsOf(config), byDefault?.name)
  const hintOf = (member: CallSettingNote['member'], hint: string): ReactNode => (
    <CallSettingHint hint={hint} notes={notes.filter((note) => note.member === member)} />
  )
  const set = (path: string, value: unknown): void => change(withMember(config, path.split('.'), value))
  const text = (path: string): string => {
    const value = path.split('.').reduce<unknown>((of, name) => (isObject(of) ? of[name] : undefined), config)
    return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
  }
  const numbers = (fields: readonly NumberField[]): ReactNode =>
    fields.map(([path, label, hint]) => (
      <Field
        key={path}
        label={label}
        hint={path === 'temperature' || path === 'max_tokens' ? hintOf(path, hint) : hint}
        fault={fault(`config.${path}`)}
      >
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
  const [isTyped] = useState(() => schemas.some(({ member }) => config[member] !== undefined))
  const [isLong] = useState(() => config.context !== undefined)
  const choice = (
    member: string,
    label: string,
    hint: ReactNode,
    texts: Readonly<Record<string, string>>,
    unset: string,
  ): ReactNode => {
    const value = text(member)
    return (
      <Field label={label} hint={hint} fault={fault(`config.${member}`)}>
        <SelectInput value={value} onChange={(event) => set(member, event.target.value || undefined)}>
          <option value="">{unset}</option>
          {Object.entries(texts).map(([name, word]) => (
            <option key={name} value={name}>
              {word}
            </option>
          ))}
          {/* What a newer service knows stays as it is. */}
          {value !== '' && !(value in texts) && <option value={value}>{value}</option>}
        </SelectInput>
      </Field>
    )
  }
  return (
    <>
      <ModelField
        project_id={project_id}
        value={text('model')}
        fault={fault('config.model')}
        onChange={(model) => set('model', model)}
      />
      <div className="grid grid-cols-1 gap-4 sm:grid-cols-2">
        {numbers(ofModel)}
        {choice(
          'effort',
          'Effort',
          hintOf('effort', 'How much the model reasons before it answers.'),
          effortWords,
          "Model's default",
        )}
        {choice(
          'service_tier',
          'Service tier',
          hintOf('service_tier', 'How its provider prices and schedules calls.'),
          tierWords,
          "Provider's default",
        )}
        {choice(
          'prompt_cache',
          'Prompt caching',
          'Repeated parts of a prompt cost less where the provider caches them.',
          cacheWords,
          'On (default)',
        )}
      </div>
      <Field label="Instructions" fault={fault('config.system_prompt')} hint="Sent to the model before every task.">
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
      <div className="grid grid-cols-1 gap-4 sm:grid-cols-2">
        {numbers(usual)}
        <Field
          label="Queue of your own workers"
          hint="Your code runs its tasks, claimed from this queue. Empty: Cadre runs them."
          fault={fault('config.runtime.queue') ?? fault('config.runtime')}
        >
          <TextInput
            autoComplete="off"
            spellCheck={false}
            value={text('runtime.queue')}
            onChange={({ target: { value } }) =>
              set('runtime', value === '' ? undefined : { kind: 'remote', queue: value })
            }
          />
        </Field>
      </div>
      <details open={isTyped}>
        <summary className="min-h-6 font-medium">Input and output</summary>
        <div className="mt-3 space-y-4">
          {schemas.map(({ member, label, hint }) => (
            <SchemaField
              key={member}
              label={label}
              hint={hint}
              value={config[member]}
              fault={schemaFaults[member] ?? fault(`config.${member}`)}
              onChange={(schema) => set(member, schema)}
              onFault={(fault) => onSchemaFault(member, fault)}
            />
          ))}
        </div>
      </details>
      <details open={isLong}>
        <summary className="min-h-6 font-medium">Long conversations</summary>
        <p className="mt-1 text-sm text-soft">
          When a conversation nears the context window, its earlier steps are replaced by a summary. Nothing is removed
          from the task.
        </p>
        <div className="mt-3 grid grid-cols-1 gap-4 sm:grid-cols-2">
          {numbers(context)}
          <Field
            label="Summaries written by"
            hint="A model. By default the one that the task runs on."
            fault={fault('config.context.model')}
          >
            <TextInput
              list="models"
              autoComplete="off"
              spellCheck={false}
              value={text('context.model')}
              onChange={(event) => set('context.model', event.target.value || undefined)}
            />
          </Field>
        </div>
      </details>
      <details open={isFurther}>
        <summary className="min-h-6 font-medium">Task budget, fallback models, approvals</summary>
        <div className="mt-3 grid gap-4 sm:grid-cols-2">
          {numbers(budget)}
          <Field
            label="Fallback models"
            fault={fault('config.fallback_models')}
            hint="Tried in this order if the model fails. Separate them with commas."
          >
            <ListInput
              value={Array.isArray(config.fallback_models) ? config.fallback_models.map(String) : []}
              onChange={(models) => set('fallback_models', models.length === 0 ? undefined : models)}
            />
          </Field>
          {numbers(retries)}
          <Field label="When an approval times out" fault={fault('config.approval_on_timeout')}>
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
