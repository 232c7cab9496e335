import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { ModelProvider } from '#sdk/types.ts'
import { api } from '../../../api/client.ts'
import { Button } from '../../../ui/button.tsx'
import { ConfirmDialog } from '../../../ui/confirm-dialog.tsx'
import { Dialog } from '../../../ui/dialog.tsx'
import { ErrorBox } from '../../../ui/error-box.tsx'
import { TextInput, Field } from '../../../ui/forms/field.tsx'
import { tell } from '../../../ui/toast.tsx'
import { PricesForm } from './prices-form.tsx'
import { EnableForm, RotateForm } from './provider-form.tsx'
import { plural } from '../../../format.ts'

type Own = NonNullable<ModelProvider['own']>

/** What can be done with a provider of the organization. */
export function OwnProviderActions({
  own,
  models,
  refused,
}: {
  own: Own
  /** The provider's names of the models that it lists. */
  models: readonly string[]
  refused: string | undefined
}) {
  const [open, setOpen] = useState<'test' | 'rotate' | 'remove-key' | 'projects' | 'prices' | 'delete'>()
  const queries = useQueryClient()
  const again = () => queries.invalidateQueries({ queryKey: ['model-providers'] })
  const save = useMutation({
    mutationFn: (body: Parameters<typeof api.modelProviders.update>[1]) => api.modelProviders.update(own.id, body),
    // What was sent may hold the key: nothing keeps it.
    gcTime: 0,
    onSuccess: () => {
      tell('Saved. New calls use it')
      close()
      return again()
    },
  })
  const close = (): void => {
    setOpen(undefined)
    save.reset()
  }
  const removeKey = async () => {
    await api.modelProviders.update(own.id, { api_key: null })
    tell('The key is removed')
    await again()
  }
  const remove = async () => {
    await api.modelProviders.delete(own.id)
    tell('The provider is deleted')
    await again()
  }
  return (
    <div className="flex flex-wrap gap-2">
      <Button size="small" reason={refused} onClick={() => setOpen('test')}>
        Test
      </Button>
      <Button size="small" reason={refused} onClick={() => setOpen('rotate')}>
        {own.key_preview === null ? 'Add key' : 'Rotate key'}
      </Button>
      {own.key_preview !== null && (
        <Button size="small" reason={refused} onClick={() => setOpen('remove-key')}>
          Remove key
        </Button>
      )}
      <Button size="small" reason={refused} onClick={() => setOpen('projects')}>
        Projects
      </Button>
      <Button size="small" reason={refused} onClick={() => setOpen('prices')}>
        Prices
      </Button>
      <Button size="small" kind="danger" reason={refused} onClick={() => setOpen('delete')}>
        Delete
      </Button>
      <Dialog title={`Test ${own.name}`} isOpen={open === 'test'} close={close} refused={refused} throwaway>
        <TestPanel own={own} />
      </Dialog>
      <Dialog
        title={own.key_preview === null ? `Add a key to ${own.name}` : `Rotate the key of ${own.name}`}
        isOpen={open === 'rotate'}
        close={close}
        refused={refused}
      >
        <RotateForm
          action={own.key_preview === null ? 'Add key' : 'Rotate key'}
          error={save.error}
          isBusy={save.isPending}
          submit={(api_key) => save.mutate({ api_key })}
        />
      </Dialog>
      <ConfirmDialog
        title={`Remove the key of ${own.name}`}
        action="Remove key"
        isOpen={open === 'remove-key'}
        close={close}
        refused={refused}
        run={removeKey}
      >
        <p>New calls carry no key. A provider that needs one refuses them, and their tasks fail.</p>
      </ConfirmDialog>
      <Dialog title={`Projects of ${own.name}`} isOpen={open === 'projects'} close={close} refused={refused}>
        <EnableForm
          own={own}
          error={save.error}
          isBusy={save.isPending}
          submit={(projects) => save.mutate({ projects })}
        />
      </Dialog>
      <Dialog
        title={`Prices of ${own.name}`}
        width="max-w-3xl"
        isOpen={open === 'prices'}
        close={close}
        refused={refused}
      >
        <ErrorBox error={save.error} />
        <PricesForm
          prices={own.prices}
          models={models}
          isBusy={save.isPending}
          submit={(prices) => save.mutate({ prices })}
        />
      </Dialog>
      <ConfirmDialog
        title={`Delete the provider ${own.name}`}
        action="Delete provider"
        isOpen={open === 'delete'}
        close={close}
        refused={refused}
        run={remove}
        typed={own.name}
      >
        <p>
          Its key is removed. Tasks of agents that use {own.name}/… then go to the provider of the service with this
          name, or fail if there is none.
        </p>
      </ConfirmDialog>
    </div>
  )
}

/** Asks a provider for its models, or one of them for an answer. */
function TestPanel({ own }: { own: Own }) {
  const [model, setModel] = useState('')
  const test = useMutation({
    mutationFn: () => api.modelProviders.test(own.id, model.trim() === '' ? {} : { model: model.trim() }),
  })
  const { data } = test
  return (
    <form
      className="space-y-4"
      onSubmit={(event) => {
        event.preventDefault()
        test.mutate()
      }}
    >
      <Field
        label="Model (optional)"
        hint="With a model, the test asks it for one word, which the provider may charge for. Without, it asks for the list of models."
      >
        <TextInput
          value={model}
          spellCheck={false}
          autoComplete="off"
          onChange={({ target }) => setModel(target.value)}
        />
      </Field>
      <ErrorBox error={test.error} />
      <p role="status" className={data?.ok ? 'text-good' : 'text-bad'}>
        {data &&
          (data.ok
            ? `It answered in ${data.duration_ms} ms.${data.models.length > 0 ? ` It lists ${plural(data.models.length, 'model')}.` : ''}`
            : data.error)}
      </p>
      <div className="flex justify-end">
        <Button kind="primary" type="submit" disabled={test.isPending}>
          {test.isPending ? 'Testing…' : 'Test'}
        </Button>
      </div>
    </form>
  )
}
