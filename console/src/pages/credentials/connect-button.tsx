import { useMutation } from '@tanstack/react-query'
import type { Credential } from '#sdk/types.ts'
import { api } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'

/** Sends a person to the issuer of a credential, in another tab. */
export function ConnectButton({
  project_id,
  credential: { id, name, status, connected_at },
  size,
  refused,
}: {
  project_id: string
  credential: Credential
  size?: 'small'
  refused: string | undefined
}) {
  const connect = useMutation({
    // The address is good once.
    gcTime: 0,
    mutationFn: async () => {
      const started = await api.credentials.authorize(project_id, id)
      globalThis.open(started.url, '_blank', 'noopener')
      return { url: started.url, connected_at }
    },
  })
  // Until the issuer has sent the person back.
  const url = connect.data?.connected_at === connected_at ? connect.data?.url : undefined
  return (
    <span className="inline-flex flex-col gap-1">
      <Button
        kind={status === 'connected' ? 'plain' : 'primary'}
        {...(size ? { size } : {})}
        aria-label={`Connect ${name}`}
        reason={refused}
        disabled={connect.isPending}
        onClick={() => connect.mutate()}
      >
        {status === 'connected' ? 'Connect again' : 'Connect'}
      </Button>
      {url !== undefined && (
        <span role="status" className="text-sm text-soft">
          Continue at{' '}
          <a href={url} target="_blank" rel="noreferrer">
            {new URL(url).host}
          </a>
          .
        </span>
      )}
      <ErrorBox error={connect.error} />
    </span>
  )
}
