import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { api } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import type { TaskLive } from './task-live.ts'

/** What a task waits for whose tools have no good token: each credential, and how it is connected. */
export function CredentialBox({ live }: { live: TaskLive }) {
  const ids = live.task?.wait?.credential_ids ?? []
  return (
    <div
      className="shrink-0 space-y-3 border-b border-line p-3 md:px-5"
      role="region"
      aria-label="Waiting for a credential"
    >
      {ids.map((id) => (
        <Connection key={id} project={live.project} id={id} />
      ))}
    </div>
  )
}

function Connection({ project, id }: { project: string; id: string }) {
  const { data, error } = useQuery({
    queryKey: ['project', project, 'credentials', id],
    queryFn: () => api.credentials.get(project, id),
  })
  const [url, setUrl] = useState<string>()
  const [failure, setFailure] = useState<unknown>()
  const [isAsking, setAsking] = useState(false)
  const connect = async (): Promise<void> => {
    setAsking(true)
    setFailure(undefined)
    try {
      const started = await api.credentials.authorize(project, id)
      setUrl(started.url)
      globalThis.open(started.url, '_blank', 'noopener')
    } catch (thrown) {
      setFailure(thrown)
    } finally {
      setAsking(false)
    }
  }
  if (!data) return <ErrorBox error={error} />
  return (
    <div>
      <div className="flex flex-wrap items-center gap-2">
        <p className="min-w-0 flex-1 text-sm">
          The task waits for the credential <strong>{data.name}</strong>
          {data.error ? `: ${data.error.message}` : '.'}
        </p>
        {data.grant === 'authorization_code' && (
          <Button kind="primary" disabled={isAsking} onClick={() => void connect()}>
            Connect
          </Button>
        )}
      </div>
      {url !== undefined && (
        <p className="mt-1 text-sm" role="status">
          Allow access at{' '}
          <a href={url} target="_blank" rel="noreferrer">
            {new URL(url).host}
          </a>
          , which has opened in another tab. The task goes on once the credential is connected.
        </p>
      )}
      {failure !== undefined && <ErrorBox error={failure} />}
    </div>
  )
}
