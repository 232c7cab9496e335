import { useQuery } from '@tanstack/react-query'
import { Link, useRouter, type ErrorComponentProps } from '@tanstack/react-router'
import { useEffect, useRef, type ReactNode } from 'react'
import { NotFoundError, PermissionDeniedError } from '#sdk/errors.ts'
import { api } from '../api/client.ts'
import { Button, ButtonLink } from '../ui/button.tsx'
import { CopyButton } from '../ui/copy.tsx'
import { EmptyState } from '../ui/empty-state.tsx'
import { ErrorBox } from '../ui/error-box.tsx'
import { usePageTitle } from '../ui/page.tsx'
import { Skeleton } from '../ui/skeleton.tsx'
import { UnloadedError } from './unloaded-error.ts'

/** Where nothing is at an address. */
export function MissingPage() {
  return (
    <EmptyState
      isPage
      title="Page not found"
      actions={
        <>
          <Button kind="primary" onClick={() => location.reload()}>
            Try again
          </Button>
          <ButtonLink to="/">Go home</ButtonLink>
          <CopyButton text={() => `Page not found\npage ${location.href}`} label="Copy details">
            Copy details
          </CopyButton>
        </>
      }
    >
      <p>The address may be wrong, the object may have been deleted, or it belongs to another organization.</p>
    </EmptyState>
  )
}

/** Where a page could not be shown. */
export function FailedPage({ error, reset }: ErrorComponentProps) {
  const router = useRouter()
  if (error instanceof NotFoundError) return <MissingPage />
  if (error instanceof UnloadedError) return <UnloadedPage error={error} />
  const again = (): void => {
    reset()
    void router.invalidate()
  }
  return (
    <Failure title={error instanceof PermissionDeniedError ? 'You don’t have access' : 'This page could not be shown'}>
      <ErrorBox error={error} retry={again} />
    </Failure>
  )
}

/** How often a service that is away is asked whether it is back, in milliseconds. */
const away_ms = 3_000

/**
 * Shown where the files of a page could not be loaded. An updated service has other files; an unreachable one has none,
 * and the page reloads when it is back: there is no input to lose.
 */
function UnloadedPage({ error }: { error: unknown }) {
  const status = useQuery({
    queryKey: ['status', 'of a page without files'],
    queryFn: () => api.service.status({ maxRetries: 0 }),
    gcTime: 0,
    refetchInterval: ({ state }) => (state.data ? false : away_ms),
  })
  const wasAway = useRef(false)
  if (status.error) wasAway.current = true
  const isBack = status.data !== undefined && wasAway.current
  useEffect(() => {
    if (isBack) location.reload()
  }, [isBack])
  if (status.data === undefined || isBack)
    return (
      <Failure title="This page could not be loaded">
        {status.error ? <ErrorBox error={status.error} retry={() => location.reload()} /> : <Skeleton rows={2} />}
      </Failure>
    )
  return (
    <Failure title="The service was updated">
      <p>Reload the page to continue.</p>
      <p className="flex flex-wrap items-center gap-3">
        <Button kind="primary" onClick={() => location.reload()}>
          Reload
        </Button>
        <CopyButton
          text={`${String(error)}\npage ${location.href}\nversion ${status.data.version}`}
          label="Copy details"
        >
          Copy details
        </CopyButton>
      </p>
    </Failure>
  )
}

function Failure({ title, children }: { title: string; children: ReactNode }) {
  usePageTitle(title)
  return (
    <div className="mx-auto max-w-2xl space-y-3 p-6">
      <h1>{title}</h1>
      {children}
      <Link to="/">Go home</Link>
    </div>
  )
}
