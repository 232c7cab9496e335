import { Dialog as Base } from '@base-ui/react/dialog'
import { X } from 'lucide-react'
import { useState, type FormEvent, type ReactNode } from 'react'
import { Button, IconButton } from './button.tsx'
import { ErrorBox } from './error-box.tsx'
import { Field, TextInput } from './field.tsx'

/** A dialog over the page. Esc and a click beside it close it. */
export function Dialog({
  isOpen,
  close,
  title,
  children,
  width = 'max-w-lg',
}: {
  isOpen: boolean
  close: () => void
  title: string
  children: ReactNode
  width?: string
}) {
  return (
    <Base.Root open={isOpen} onOpenChange={(open) => !open && close()}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 z-40 bg-[rgb(10_10_20/45%)]" />
        <Base.Popup
          className={`fixed top-1/2 left-1/2 z-50 max-h-[92dvh] w-[calc(100vw-2rem)] ${width} -translate-x-1/2 -translate-y-1/2 overflow-y-auto rounded-lg border border-line bg-raised p-5 shadow-xl`}
        >
          <div className="mb-3 flex items-start justify-between gap-3">
            <Base.Title className="text-lg font-semibold">{title}</Base.Title>
            <IconButton label="Close" onClick={close}>
              <X size={16} aria-hidden />
            </IconButton>
          </div>
          {children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

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
}

/** Asks before something is done; stays open with the reason where it fails. */
export function ConfirmDialog({ isOpen, close, title, children, action, run, typed, kind = 'danger' }: Confirmation) {
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
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog isOpen={isOpen} close={end} title={title}>
      <form onSubmit={(event) => void submit(event)} className="space-y-4">
        <div className="space-y-2 text-soft">{children}</div>
        {typed !== undefined && (
          <Field label={`Type ${typed} to go on`}>
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
          <Button onClick={end}>Keep it as it is</Button>
          <Button kind={kind} type="submit" disabled={isBusy || (typed !== undefined && text !== typed)}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
