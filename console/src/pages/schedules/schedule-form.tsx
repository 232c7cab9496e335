import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { isObject } from '#contract/core/merge-patch.ts'
import type { NewSchedule, Schedule } from '#sdk/types.ts'
import { AgentField } from '../../agents/agent-picker.tsx'
import { api } from '../../api/client.ts'
import { fieldFault } from '../../api/error-text.ts'
import { Field, SelectInput, TextArea, TextInput } from '../../ui/forms/field.tsx'
import { Form } from '../../ui/forms/form.tsx'
import { Options } from '../parts/options.tsx'
import { cronWords } from './cron-description.ts'
import { RunTimes } from './run-times.tsx'
import { localZone } from '#contract/accounts/preference-choices.ts'
import { zoneName } from '../../format.ts'
import { ZonePicker } from '../../ui/forms/zone-picker.tsx'

const presets: Record<string, string> = {
  '0 * * * *': 'Every hour',
  '0 9 * * *': 'Every day',
  '30 7 * * mon-fri': 'Every weekday',
  '0 9 * * mon': 'Every week',
  '0 9 1 * *': 'Every month',
}

/** When, who and what. With `values` it changes a schedule; its agent stays. */
export function ScheduleForm({
  project_id,
  values,
  error,
  isBusy,
  submit,
}: {
  project_id: string
  values?: Schedule
  error: unknown
  isBusy: boolean
  submit: (values: NewSchedule) => void
}) {
  const [name, setName] = useState(values?.name ?? '')
  const [agent_id, setAgent] = useState<string | undefined>(values?.agent_id)
  const [cron, setCron] = useState(values?.cron ?? '30 7 * * mon-fri')
  const [time_zone, setZone] = useState(values?.time_zone ?? zoneName(localZone))
  const isText = values === undefined || typeof values.input === 'string'
  const [input, setInput] = useState(
    isText ? ((values?.input as string | undefined) ?? '') : JSON.stringify(values.input, undefined, 2),
  )
  const [overlap, setOverlap] = useState(values?.overlap ?? 'skip')
  const [catch_up, setCatchUp] = useState(values?.catch_up ?? 'once')
  const asked = useRested(JSON.stringify({ cron: cron.trim(), time_zone }))
  const preview = useQuery({
    queryKey: ['project', project_id, 'schedules', 'preview', asked],
    queryFn: () => api.schedules.preview(project_id, JSON.parse(asked) as { cron: string; time_zone: string }),
    enabled: cron.trim() !== '',
    placeholderData: keepPreviousData,
    retry: false,
  })
  const fault = (field: string) => fieldFault(preview.error, field)
  const runs = preview.error ? [] : (preview.data?.next_runs ?? [])
  const data = readInput(input, !isText)
  const reason =
    name.trim() === ''
      ? 'Enter a name'
      : agent_id === undefined
        ? 'Choose an agent'
        : preview.error
          ? 'Fix the cron pattern'
          : preview.data && runs.length === 0
            ? 'It would never run'
            : data === undefined
              ? input.trim() === ''
                ? 'Enter the task input'
                : 'The input is not valid JSON'
              : undefined
  return (
    <Form
      action={values ? 'Save' : 'Create schedule'}
      reason={reason}
      error={error}
      isBusy={isBusy}
      submit={() =>
        submit({
          ...{ agent_id: agent_id!, name: name.trim(), cron: cron.trim(), time_zone },
          ...{ input: data as NewSchedule['input'], overlap, catch_up },
        })
      }
    >
      <Field field="name" label="Name">
        <TextInput value={name} placeholder="Morning report" onChange={({ target }) => setName(target.value)} />
      </Field>
      {!values && <AgentField project_id={project_id} value={agent_id} onChange={setAgent} />}
      <Field field="input" label={isText ? 'Task input' : 'Input, as JSON'}>
        <TextArea
          rows={3}
          value={input}
          {...(isText ? {} : { spellCheck: false, className: 'font-mono !text-sm' })}
          placeholder="Summarize what happened since yesterday."
          onChange={({ target }) => setInput(target.value)}
        />
      </Field>
      <div className="grid gap-4 sm:grid-cols-[11rem_1fr_1fr]">
        <Field label="Runs">
          <SelectInput
            value={presets[cron] === undefined ? '' : cron}
            onChange={({ target }) => target.value !== '' && setCron(target.value)}
          >
            <Options of={{ ...presets, '': 'By a pattern' }} />
          </SelectInput>
        </Field>
        <Field
          label="Pattern"
          hint={(fault('cron') ? undefined : cronWords(cron.trim())) ?? 'Minute, hour, day, month, weekday'}
          fault={fault('cron')}
        >
          <TextInput
            className="font-mono"
            spellCheck={false}
            autoComplete="off"
            value={cron}
            onChange={({ target }) => setCron(target.value)}
          />
        </Field>
        <div>
          <p className="mb-1 font-medium">Time zone</p>
          <ZonePicker label="Time zone" value={time_zone} onChange={setZone} />
          {fault('time_zone') && <p className="mt-1 text-sm font-medium text-bad">{fault('time_zone')}</p>}
        </div>
      </div>
      <div className="rounded-md border border-line px-3 py-2">
        <h3 className="text-sm font-medium">Next runs</h3>
        {runs.length > 0 ? (
          <RunTimes label="Next runs" runs={runs} time_zone={time_zone} />
        ) : (
          <p className="py-1.5 text-soft">
            {preview.error ? 'This is not a valid cron pattern.' : preview.data ? 'It would never run.' : 'Counting…'}
          </p>
        )}
      </div>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label="While an earlier task is open">
          <SelectInput value={overlap} onChange={({ target }) => setOverlap(target.value as typeof overlap)}>
            <Options of={{ skip: 'Skip this run', queue: 'Queue another task' }} />
          </SelectInput>
        </Field>
        <Field label="Runs missed while the service was down">
          <SelectInput value={catch_up} onChange={({ target }) => setCatchUp(target.value as typeof catch_up)}>
            <Options of={{ once: 'Run once when it is back', none: 'Wait for the next run' }} />
          </SelectInput>
        </Field>
      </div>
    </Form>
  )
}

/** Milliseconds without a key after which what was typed is asked about. */
const rest_ms = 250

/** A value as it was when it last rested. */
function useRested<T>(value: T): T {
  const [rested, setRested] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setRested(value), rest_ms)
    return () => clearTimeout(timer)
  }, [value])
  return rested
}

/** What is sent: the text, or the value of the JSON; undefined where it is none. */
function readInput(text: string, isJson: boolean): unknown {
  if (!isJson) return text.trim() === '' ? undefined : text
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) || Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
