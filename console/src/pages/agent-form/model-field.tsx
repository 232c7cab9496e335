import type { ReactNode } from 'react'
import { useQuery } from '@tanstack/react-query'
import type { ModelProvider } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { messageOf } from '../../api/error-text.ts'
import { Field, TextInput } from '../../ui/forms/field.tsx'
import { Status } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { useModelProviders } from './model-providers.ts'

const tones = { reachable: 'good', refused: 'bad', unreachable: 'bad', unreadable: 'bad' } as const

/**
 * The model: typed, or chosen from those that providers list. Who may read the organization sees which providers answer; others are
 * offered the models that agents of the project use.
 */
export function ModelField({
  project_id,
  value,
  fault,
  onChange,
}: {
  project_id: string
  value: string
  fault: ReactNode
  onChange: (model: string) => void
}) {
  const { providers, isKnown, maySee } = useModelProviders(project_id)
  const used = useQuery({
    queryKey: ['project', project_id, 'agents', 'models'],
    queryFn: async () => {
      const { items } = await api.agents.list(project_id, { limit: 100 }).page()
      return [...new Set(['builtin/echo', ...items.map(({ config }) => config.model)])]
    },
    enabled: isKnown && !maySee,
  })
  const known = providers.data
  const offered = known?.flatMap(({ models }) => models) ?? used.data ?? []
  const named = known && providerOf(known, value)
  return (
    <div className="space-y-2">
      <Field
        label="Model"
        fault={fault}
        hint="provider/model. builtin/echo needs no provider: it answers with its input."
      >
        <TextInput
          list="models"
          autoComplete="off"
          spellCheck={false}
          value={value}
          onChange={(event) => onChange(event.target.value)}
        />
      </Field>
      <datalist id="models">
        {offered.map((model) => (
          <option key={model} value={model} />
        ))}
      </datalist>
      {known && value !== '' && <Verdict provider={named} model={value} />}
      {providers.error && <p className="text-sm text-bad">Providers are not known: {messageOf(providers.error)}</p>}
      {known && (
        <ul aria-label="Model providers" className="flex flex-wrap gap-2">
          {known.map((provider) => (
            <li
              key={provider.name}
              className={`flex items-center gap-1.5 rounded-md border px-2 py-1 text-sm ${provider === named ? 'border-accent bg-accent-soft' : 'border-line'}`}
              title={provider.error ?? undefined}
            >
              <code>{provider.name}</code>
              {provider.is_default && <span className="text-soft">default</span>}
              <Status
                state={provider.status === 'reachable' ? 'active' : 'failed'}
                label={provider.status}
                tone={tones[provider.status]}
              />
              <span className="text-soft">{provider.models.length > 0 && `${provider.models.length} models`}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  )
}

/** Known facts of the typed model; an unlisted model may work all the same. */
function Verdict({ provider, model }: { provider: ModelProvider | undefined; model: string }) {
  if (!provider)
    return (
      <p role="status" className="text-sm text-warn">
        No provider is configured for it: its tasks fail until one is added.
      </p>
    )
  if (provider.status !== 'reachable')
    return (
      <p role="status" className="text-sm text-bad">
        <code>{provider.name}</code> is {provider.status}: {provider.error} Asked <Time at={provider.checked_at} />.
      </p>
    )
  const isListed =
    provider.models.length === 0 || provider.models.some((name) => name === model || name.endsWith(`/${model}`))
  return (
    <p role="status" className={`text-sm ${isListed ? 'text-soft' : 'text-warn'}`}>
      {isListed ? (
        <>
          <code>{provider.name}</code> is reachable.
        </>
      ) : (
        <>
          <code>{provider.name}</code> is reachable, but does not list this model.
        </>
      )}
    </p>
  )
}

/** Who serves a model: the provider in front of the slash, else the default one. */
function providerOf(providers: readonly ModelProvider[], model: string): ModelProvider | undefined {
  const slash = model.indexOf('/')
  return providers.find(({ name, is_default }) => (slash < 0 ? is_default : name === model.slice(0, slash)))
}
