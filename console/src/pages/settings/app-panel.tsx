import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { tell } from '../../ui/toast.tsx'
import { AppForm } from './app-form.tsx'

/** An app whose secret is shown now, for the only time. */
export interface MadeSecret {
  name: string
  client_secret: string
}

/** One app of the organization: to change, to give a new secret, and to delete with all that people gave it. */
export function AppPanel({
  client_id,
  close,
  reveal,
}: {
  client_id: string
  close: () => void
  reveal: (made: MadeSecret) => void
}) {
  const queries = useQueryClient()
  const [asked, ask] = useState<'rotate' | 'delete'>()
  const app = useQuery({ queryKey: ['oauth-clients', client_id], queryFn: () => api.oauth.getClient(client_id) })
  const save = useMutation({
    mutationFn: (body: Parameters<typeof api.oauth.updateClient>[1]) => api.oauth.updateClient(client_id, body),
    gcTime: 0,
    onSuccess: () => {
      tell('Saved')
      return queries.invalidateQueries({ queryKey: ['oauth-clients'] })
    },
  })
  const { data } = app
  return (
    <Dialog width="max-w-2xl" title={data?.name ?? 'OAuth app'} isOpen close={close}>
      {app.isPending && <Skeleton label="Loading the app" />}
      <ErrorBox error={app.error} retry={() => void app.refetch()} />
      {data && (
        <>
          <p className="mb-3 flex flex-wrap items-center gap-x-3 text-soft">
            <CopyId id={client_id} />
            {data.confidential ? 'confidential: it has a client secret' : 'public: it has no secret and uses PKCE'}
            {data.native && ', runs on devices'}
          </p>
          <AppForm
            key={data.updated_at ?? ''}
            values={data}
            error={save.error}
            isBusy={save.isPending}
            submit={({ name, redirect_uris, scopes }) => save.mutate({ name, redirect_uris, scopes })}
          />
          <hr className="my-4 border-line" />
          <div className="flex flex-wrap gap-2">
            <Button reason={data.confidential ? undefined : 'A public app has no secret'} onClick={() => ask('rotate')}>
              Rotate secret
            </Button>
            <Button kind="danger" onClick={() => ask('delete')}>
              Delete app
            </Button>
          </div>
          <ConfirmDialog
            isOpen={asked === 'rotate'}
            close={() => ask(undefined)}
            kind="primary"
            title={`A new secret for ${data.name}`}
            action="Replace secret"
            run={async () => {
              const { client_secret } = await api.oauth.updateClient(client_id, { rotate_secret: true })
              await queries.invalidateQueries({ queryKey: ['oauth-clients'] })
              close()
              if (client_secret !== undefined) reveal({ name: data.name, client_secret })
            }}
          >
            <p>
              The old secret stops at once: the app cannot exchange codes or refresh tokens until it has the new one.
            </p>
          </ConfirmDialog>
          <ConfirmDialog
            isOpen={asked === 'delete'}
            close={() => ask(undefined)}
            title={`Delete ${data.name}`}
            action="Delete app"
            typed={data.name}
            run={async () => {
              await api.oauth.deleteClient(client_id)
              close()
              tell('The app is deleted')
              await queries.invalidateQueries({
                queryKey: ['oauth-clients'],
                predicate: ({ queryKey }) => queryKey[1] !== client_id,
              })
            }}
          >
            <p>All access that people gave it ends with its next request. This cannot be undone.</p>
          </ConfirmDialog>
        </>
      )}
    </Dialog>
  )
}
