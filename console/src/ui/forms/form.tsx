import type { ReactNode } from 'react'
import { Button } from '../button.tsx'

/** A form that the button at its end sends. */
export function Form({
  action,
  reason,
  isBusy,
  submit,
  children,
}: {
  /** What the button says. */
  action: string
  /** Why it cannot be sent as it is. */
  reason?: string | undefined
  isBusy: boolean
  submit: () => void
  children: ReactNode
}) {
  return (
    <form
      className="space-y-4"
      onSubmit={(event) => {
        event.preventDefault()
        if (reason === undefined) submit()
      }}
    >
      {children}
      <div className="flex justify-end">
        <Button kind="primary" type="submit" reason={reason} disabled={isBusy}>
          {action}
        </Button>
      </div>
    </form>
  )
}
