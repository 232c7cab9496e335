import { useState, type FormEvent, type ReactNode } from 'react'
import { noteFailure } from '../api/signed-out.ts'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { ErrorBox } from './error-box.tsx'
import { Field, TextInput } from './forms/field.tsx'

interface Confirmation {
  isOpen: boolean
  close: () => void
  title: string
  children?: ReactNode
  /** What the button that does it says. */
  action: string
  run: () => Promise<unknown>
  /** What must be typed first, for what cannot be undone. */
  typed?: string | undefined
  kind?: 'primary' | 'danger'
  /** What the button that leaves everything as it is says. */
  dismiss?: string
  /** Why the one who looks may not do it. */
  refused?: string | undefined
}

/** Asks before something is done; stays open with the reason where it fails. */
export function ConfirmDialog({
  isOpen,
  close,
  title,
  children,
  action,
  run,
  typed,
  kind = 'danger',
  dismiss = 'Cancel',
  refused,
}: Confirmation) {
  const [text, setText] = useState('')
  const [error, setError] = useState<unknown>()
  const [isBusy, setBusy] = useState(false)
  const end = (): void => {
    setText('')
    setError(undefined)
    close()
  }
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault()
    event.stopPropagation()
    setBusy(true)
    setError(undefined)
    try {
      await run()
      end()
    } catch (failure) {
      setError(failure)
      if (failure instanceof Error) noteFailure(failure)
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog isOpen={isOpen} close={end} title={title} throwaway refused={refused}>
      <form onSubmit={(event) => void submit(event)} className="space-y-4">
        <div className="space-y-2 text-soft">{children}</div>
        {typed !== undefined && (
          <Field label={`Type ${typed} to confirm`}>
            <TextInput
              value={text}
              onChange={(event) => setText(event.target.value)}
              autoComplete="off"
              spellCheck={false}
            />
          </Field>
        )}
        <ErrorBox error={error} />
        <div className="flex justify-end gap-2">
          <Button onClick={end}>{dismiss}</Button>
          <Button kind={kind} type="submit" disabled={isBusy || (typed !== undefined && text !== typed)}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
