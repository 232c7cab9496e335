import { Toast } from '@base-ui/react/toast'
import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { messageOf } from '../api/error-text.ts'
import { APIError } from '#sdk/errors.ts'

const manager = Toast.createToastManager()

/** Milliseconds in which what was done can be undone by its message. */
const undo_ms = 20_000

/** Says that something was done; with `undo`, how it is taken back. */
export function tell(title: string, undo?: () => void): void {
  if (!undo) {
    manager.add({ title, type: 'good', timeout: 4000 })
    return
  }
  const id = manager.add({
    title,
    type: 'good',
    timeout: undo_ms,
    actionProps: {
      children: 'Undo',
      onClick: () => {
        manager.close(id)
        undo()
      },
    },
  })
}

/** Says why something cannot be done, to who cannot hover over it. */
export function tellReason(reason: string): void {
  manager.add({ id: reason, title: reason, timeout: 4000 })
}

/** Says that something failed, and why. */
export function tellFailure(title: string, error: unknown): void {
  const id = error instanceof APIError && error.requestId ? ` (${error.requestId})` : ''
  manager.add({ title, description: `${messageOf(error)}${id}`, type: 'bad', priority: 'high', timeout: 12_000 })
}

/** Where short messages appear, over every page. */
export function Toasts({ children }: { children: ReactNode }) {
  return (
    <Toast.Provider toastManager={manager}>
      {children}
      <Toast.Portal>
        <Toast.Viewport className="fixed right-4 bottom-4 z-60 flex w-[min(24rem,calc(100vw-2rem))] flex-col gap-2">
          <List />
        </Toast.Viewport>
      </Toast.Portal>
    </Toast.Provider>
  )
}

function List() {
  const { toasts } = Toast.useToastManager()
  return toasts.map((toast) => (
    <Toast.Root
      key={toast.id}
      toast={toast}
      data-toast
      className={`rounded-md border bg-raised p-3 shadow-lg ${toast.type === 'bad' ? 'border-bad' : 'border-line'}`}
    >
      <div className="flex items-start gap-2">
        <div className="min-w-0 flex-1 break-words">
          <Toast.Title className="font-medium" />
          <Toast.Description className="text-sm text-soft" />
        </div>
        <Toast.Action className="min-h-6 rounded px-2 text-sm font-medium text-accent hover:bg-quiet" />
        <Toast.Close
          aria-label="Close"
          className="inline-flex size-6 items-center justify-center rounded text-soft hover:bg-quiet"
        >
          <X size={14} aria-hidden />
        </Toast.Close>
      </div>
    </Toast.Root>
  ))
}
