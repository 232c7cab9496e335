import { Link, useRouter, type ErrorComponentProps } from '@tanstack/react-router'
import { NotFoundError, PermissionDeniedError } from '../../../sdk/src/errors.ts'
import { Button } from '../ui/button.tsx'
import { EmptyState } from '../ui/empty-state.tsx'
import { ErrorBox } from '../ui/error-box.tsx'

/** Where nothing is at an address. */
export function MissingPage() {
  return (
    <EmptyState
      title="There is nothing here"
      actions={
        <>
          <Button kind="primary" onClick={() => location.reload()}>
            Try again
          </Button>
          <Link to="/">Go home</Link>
        </>
      }
    >
      <p>The address may be wrong, what was here may have been deleted, or it belongs to somebody else.</p>
    </EmptyState>
  )
}

/** Where a page could not be shown. */
export function FailedPage({ error, reset }: ErrorComponentProps) {
  const router = useRouter()
  if (error instanceof NotFoundError) return <MissingPage />
  const again = (): void => {
    reset()
    void router.invalidate()
  }
  // A service that was updated has other files: this page is of the one before.
  const isOld = /dynamically imported module|module script failed/i.test(String(error))
  return (
    <div className="mx-auto max-w-2xl space-y-3 p-6">
      <h1>
        {error instanceof PermissionDeniedError
          ? 'You may not see this'
          : isOld
            ? 'The service was updated'
            : 'This page could not be shown'}
      </h1>
      {isOld ? <p>This page is of an earlier version.</p> : <ErrorBox error={error} retry={again} />}
      <div className="flex gap-2">
        {isOld && (
          <Button kind="primary" onClick={() => location.reload()}>
            Load it again
          </Button>
        )}
        <Link to="/">Go home</Link>
      </div>
    </div>
  )
}
