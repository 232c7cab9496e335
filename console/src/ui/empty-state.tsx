import type { ReactNode } from 'react'
import { CodeBlock } from './copy.tsx'
import { ErrorBox } from './error-box.tsx'
import { usePageTitle } from './page.tsx'

/** Where there is nothing yet: what it would be, and how the first one comes about. In a card it has no separate frame. */
export function EmptyState({
  title,
  children,
  actions,
  command,
  isPage = false,
}: {
  title: string
  children?: ReactNode
  actions?: ReactNode
  /** The one command that makes the first one. */
  command?: string
  /** Whether it stands in place of a whole page, and is its heading. */
  isPage?: boolean
}) {
  usePageTitle(isPage ? title : undefined)
  const Heading = isPage ? 'h1' : 'h2'
  return (
    <div className="empty-state rounded-lg border border-line bg-panel">
      <div className="mx-auto max-w-xl px-4 py-12 text-center">
        <Heading className="!text-lg">{title}</Heading>
        <div className="mt-2 space-y-3 text-soft">
          <div className="space-y-3">{children}</div>
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

/** In place of the page of something that is not there. `back`: the way to those that are. */
export function Missing({
  noun,
  reason = 'It may have been deleted, or belong to another project.',
  error,
  retry,
  back,
}: {
  /** What it would be, as `Agent`. */
  noun: string
  reason?: string
  error: unknown
  retry: () => void
  back: ReactNode
}) {
  return (
    <EmptyState isPage title={`${noun} not found`} actions={back}>
      <p>{reason}</p>
      <ErrorBox error={error} retry={retry} />
    </EmptyState>
  )
}
