import type { ReactNode } from 'react'
import { CodeBlock } from './copy.tsx'

/** Where there is nothing yet: what it would be, and how the first one comes about. In a card it has no separate frame. */
export function EmptyState({
  title,
  children,
  actions,
  command,
}: {
  title: string
  children?: ReactNode
  actions?: ReactNode
  /** The one command that makes the first one. */
  command?: string
}) {
  return (
    <div className="empty-state rounded-lg border border-line bg-panel">
      <div className="mx-auto max-w-xl px-4 py-12 text-center">
        <h2>{title}</h2>
        <div className="mt-2 space-y-3 text-soft">
          {children}
          {command !== undefined && (
            <div className="text-left">
              <CodeBlock text={command} label="Copy the command" />
            </div>
          )}
        </div>
        {actions && <div className="mt-5 flex flex-wrap justify-center gap-2">{actions}</div>}
      </div>
    </div>
  )
}
