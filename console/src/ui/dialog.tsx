import { Dialog as Base } from '@base-ui/react/dialog'
import { X } from 'lucide-react'
import { useEffect, useRef, useState, type FormEvent, type ReactNode } from 'react'
import { Button, IconButton } from './button.tsx'
import { noteFailure } from '../api/signed-out.ts'
import { ErrorBox } from './error-box.tsx'
import { Field, TextInput } from './field.tsx'

/** What can be typed into or chosen from, and what ends a form. */
const field = 'input, textarea, select, [role=combobox]'
const tabbable = `${field}, button, a[href], [tabindex="0"]`

/**
 * A dialog over the page. Esc, its cross and a click beside it close it; where something was typed into a form of it, they ask
 * first, unless that is `throwaway`. It begins in its first field, or with the button of its form that does nothing.
 */
export function Dialog({
  isOpen,
  close,
  title,
  children,
  width = 'max-w-lg',
  throwaway = false,
  refused,
}: {
  isOpen: boolean
  close: () => void
  title: string
  children: ReactNode
  width?: string
  throwaway?: boolean
  /** Why the one who looks may not do what the dialog is for: it is said in place of all else. */
  refused?: string | undefined
}) {
  const content = useRef<HTMLDivElement>(null)
  // A form that was sent and is shown anew, with what was saved, is another one.
  const typed = useRef<HTMLFormElement>(undefined)
  const [isAsked, setAsked] = useState(false)
  useEffect(() => {
    typed.current = undefined
    setAsked(false)
  }, [isOpen])
  const leave = (): void => {
    if (!throwaway && typed.current?.isConnected) setAsked(!isAsked)
    else close()
  }
  const note = ({ target, currentTarget }: FormEvent<HTMLElement>): void => {
    // What is typed into a dialog over this one comes by here too.
    if (!currentTarget.contains(target as Node)) return
    const form = (target as Partial<HTMLInputElement>).form
    if (form) typed.current = form
  }
  return (
    <Base.Root open={isOpen} onOpenChange={(open) => !open && leave()}>
      <Base.Portal>
        <Base.Backdrop className="fixed inset-0 z-40 bg-[rgb(10_10_20/45%)]" />
        <Base.Popup
          onInput={note}
          initialFocus={() => {
            const first = [...(content.current?.querySelectorAll<HTMLElement>(tabbable) ?? [])].find(
              (one) => !one.matches(':disabled, [type=hidden], [tabindex="-1"]'),
            )
            return first && (first.matches(field) || first.closest('form')) ? first : true
          }}
          className={`fixed top-1/2 left-1/2 z-50 max-h-[92dvh] w-[calc(100vw-2rem)] ${width} -translate-x-1/2 -translate-y-1/2 overflow-y-auto rounded-lg border border-line bg-raised p-5 shadow-xl`}
        >
          <div className="mb-3 flex items-start justify-between gap-3">
            <Base.Title className="min-w-0 text-lg font-semibold wrap-anywhere">{title}</Base.Title>
            <IconButton label="Close" onClick={leave}>
              <X size={16} aria-hidden />
            </IconButton>
          </div>
          {isAsked && <Discard keep={() => setAsked(false)} discard={close} />}
          <div ref={content}>{refused === undefined ? children : <p className="text-soft">{refused}.</p>}</div>
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

function Discard({ keep, discard }: { keep: () => void; discard: () => void }) {
  return (
    <div
      role="alert"
      className="sticky top-0 z-10 mb-3 flex flex-wrap items-center justify-between gap-2 rounded-md border border-line bg-warn-soft p-2 text-warn"
    >
      What you typed here is not saved.
      <span className="flex gap-2">
        <Button onClick={keep}>Go on</Button>
        <Button kind="danger" onClick={discard}>
          Discard it
        </Button>
      </span>
    </div>
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
