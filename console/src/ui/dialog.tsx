import { Dialog as Base } from '@base-ui/react/dialog'
import { X } from 'lucide-react'
import { useEffect, useRef, useState, type FormEvent, type ReactNode } from 'react'
import { Button, IconButton } from './button.tsx'

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
        {/* A dialog over another one dims that too: it comes later in the page, at the same height. */}
        <Base.Backdrop forceRender className="fixed inset-0 z-50 bg-[rgb(10_10_20/45%)]" />
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
          <div className="mb-3 flex items-center justify-between gap-3">
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
      Your changes are not saved.
      <span className="flex gap-2">
        <Button onClick={keep}>Keep editing</Button>
        <Button kind="danger" onClick={discard}>
          Discard changes
        </Button>
      </span>
    </div>
  )
}
