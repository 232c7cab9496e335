import type { ReactNode } from 'react'
import { Button } from '../button.tsx'
import { ErrorBox } from '../error-box.tsx'
import { Refusal, useFocusOnRefusal } from './refusal.ts'

/** A form that the button at its end sends. What the service refuses is shown at the fields with that `field`, and above the button. */
export function Form({
  action,
  reason,
  error,
  isBusy,
  submit,
  children,
}: {
  /** What the button says. */
  action: string
  /** Why it cannot be sent as it is. */
  reason?: string | undefined
  /** Why sending it failed. */
  error: unknown
  isBusy: boolean
  submit: () => void
  children: ReactNode
}) {
  return (
    <form
      ref={useFocusOnRefusal(error)}
      className="space-y-4"
      // The browser would say what is wrong in its own language, over the page.
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        if (reason === undefined) submit()
      }}
    >
      <Refusal value={error}>{children}</Refusal>
      <ErrorBox error={error} />
      <div className="flex justify-end">
        <Button kind="primary" type="submit" reason={reason} disabled={isBusy}>
          {action}
        </Button>
      </div>
    </form>
  )
}
