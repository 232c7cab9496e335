import { formatCount, plural } from '../../format.ts'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { ConfirmDialog } from '../../ui/confirm-dialog.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Field, SelectInput } from '../../ui/forms/field.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { Options } from '../parts/options.tsx'
import { KeyActivity, ScopeWarning, useKeyActivity } from './key-activity.tsx'
import { KeyForm } from './key-form.tsx'

const overlaps = {
  '0': 'End the old secret at once',
  '3600': '1 hour',
  '86400': '1 day',
  '604800': '7 days',
  '2592000': '30 days',
}

/** One key: what it did, and what can be done to it. */
export function KeyPanel({
  id,
  close,
  reveal,
}: {
  id: string
  close: () => void
  reveal: (made: { name: string; key: string }) => void
}) {
  const queries = useQueryClient()
  const key = useQuery({ queryKey: ['api-keys', id], queryFn: () => api.apiKeys.get(id), refetchInterval: 10_000 })
  const activity = useKeyActivity(id)
  const [overlap, setOverlap] = useState('86400')
  const [isRevoking, setRevoking] = useState(false)
  const done = () => queries.invalidateQueries({ queryKey: ['api-keys'] })
  const save = useMutation({
    mutationFn: (body: Parameters<typeof api.apiKeys.update>[1]) => api.apiKeys.update(id, body),
    onSuccess: () => {
      tell('Saved')
      return done()
    },
  })
  const rotate = useMutation({
    mutationFn: () => api.apiKeys.rotate(id, { overlap_seconds: Number(overlap) }),
    gcTime: 0,
    onSuccess: (made) => {
      reveal(made)
      close()
      return done()
    },
  })
  const revoke = async () => {
    await api.apiKeys.delete(id)
    tell('The key is revoked')
    close()
    // All but the key itself, which is no more.
    await queries.invalidateQueries({ queryKey: ['api-keys'], predicate: ({ queryKey }) => queryKey[1] !== id })
  }
  const stats = key.data?.usage_stats
  return (
    <Dialog width="max-w-2xl" title={key.data?.name ?? 'API key'} isOpen close={close}>
      {key.isPending && <Skeleton label="Loading the key" />}
      {key.isError && <ErrorBox error={key.error} retry={() => void key.refetch()} />}
      {key.data && stats && (
        <>
          <dl className="mb-4 grid grid-cols-2 gap-3 text-sm sm:grid-cols-4">
            {(
              [
                ['Requests in 24 h', stats.requests_last_24h],
                ['in 7 days', stats.requests_last_7d],
                ['in 30 days', stats.requests_last_30d],
                ['in total', stats.total_requests],
              ] as const
            ).map(([label, value]) => (
              <div key={label}>
                <dt className="text-xs text-soft">{label}</dt>
                <dd className="text-lg tabular-nums">{formatCount(value)}</dd>
              </div>
            ))}
          </dl>
          <p className="mb-4 text-sm text-soft">
            Created <Time at={key.data.created_at} />, expires{' '}
            {key.data.expires_at === null ? 'never' : <Time at={key.data.expires_at} />}.{' '}
            {key.data.last_used === null ? (
              'Never used.'
            ) : (
              <>
                Last used <Time at={key.data.last_used} />
                {key.data.last_ip !== undefined && (
                  <>
                    {' '}
                    from <span className="font-mono">{key.data.last_ip}</span>
                  </>
                )}
                .
              </>
            )}
          </p>
          <KeyActivity {...activity} />
          <hr className="my-4 border-line" />
          <KeyForm
            key={key.data.updated_at ?? ''}
            values={{ ...key.data, expires_at: undefined }}
            error={save.error}
            isBusy={save.isPending}
            submit={({ name, description, scopes }) => save.mutate({ name, description, scopes })}
            warning={(scopes) => <ScopeWarning calls={activity.data?.calls} scopes={scopes} />}
          />
          <hr className="my-4 border-line" />
          <h3 className="mb-1 text-sm font-semibold">Rotate</h3>
          <p className="mb-2 text-sm text-soft">
            The key gets a new secret, and keeps its name, scopes and usage. The old secret keeps working for a while,
            so you can update programs one by one.
          </p>
          {rotate.isError && <ErrorBox error={rotate.error} />}
          <Field label="Keep the old secret working for">
            <SelectInput value={overlap} onChange={(event) => setOverlap(event.target.value)}>
              <Options of={overlaps} />
            </SelectInput>
          </Field>
          <Button className="mt-3" onClick={() => rotate.mutate()} disabled={rotate.isPending}>
            Rotate key
          </Button>
          <hr className="my-4 border-line" />
          <h3 className="mb-1 text-sm font-semibold">Revoke</h3>
          <p className="mb-2 text-sm">
            {stats.requests_last_24h > 0 ? (
              <strong>
                In use: {plural(stats.requests_last_24h, 'request')} in the last 24 hours, the latest{' '}
                <Time at={key.data.last_used} />.
              </strong>
            ) : stats.requests_last_30d > 0 ? (
              <>
                Not used in the last 24 hours, but {plural(stats.requests_last_30d, 'time')} in 30 days: a job that runs
                now and then may need it. Last used <Time at={key.data.last_used} />.
              </>
            ) : (
              'Not used in the last 30 days: nothing should break.'
            )}
            {activity.data && activity.data.calls.length > 0 && (
              <>
                {' '}
                It calls {plural(activity.data.calls.length, 'operation')}, the latest{' '}
                <code className="font-mono text-xs">{activity.data.calls[0]?.operation}</code>.
              </>
            )}
          </p>
          <Button kind="danger" onClick={() => setRevoking(true)}>
            Revoke key
          </Button>
          <ConfirmDialog
            title={`Revoke the key ${key.data.name}`}
            action="Revoke key"
            isOpen={isRevoking}
            close={() => setRevoking(false)}
            run={revoke}
          >
            <p>Its next request fails with 401. This cannot be undone.</p>
          </ConfirmDialog>
        </>
      )}
    </Dialog>
  )
}
