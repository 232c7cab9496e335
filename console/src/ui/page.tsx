import { useEffect, type ReactNode } from 'react'

/** Sets the title of the tab; leaves it as it is where `title` is undefined. */
export function usePageTitle(title: string | undefined): void {
  useEffect(() => {
    if (title !== undefined) document.title = `${title} · Cadre`
  }, [title])
}

/** The head of a page: what it is, and what can be done here. Sets the title of the tab. */
export function PageHeader({
  title,
  parent,
  label,
  children,
  actions,
}: {
  title: string
  /** A link to the page that this one is within. */
  parent?: ReactNode
  label?: ReactNode
  children?: ReactNode
  actions?: ReactNode
}) {
  usePageTitle(title)
  const header = (
    <header className="mb-4 flex items-start justify-between gap-3 max-sm:flex-wrap">
      <div className="min-w-0 sm:min-w-60 sm:flex-1">
        <h1 className="flex flex-wrap items-center gap-2 wrap-anywhere">{label ?? title}</h1>
        {children && <div className="mt-1 wrap-anywhere text-soft">{children}</div>}
      </div>
      {actions && (
        <div className="flex flex-wrap items-center gap-2 max-sm:*:[[title='Copy_as_curl']]:order-last sm:justify-end">
          {actions}
        </div>
      )}
    </header>
  )
  if (parent === undefined) return header
  return (
    <>
      <nav aria-label="Where" className="mb-1 text-sm wrap-anywhere">
        {parent}
      </nav>
      {header}
    </>
  )
}

/** Why the one who looks can read a form, but not save it. */
export function ReadOnlyNotice({ reason }: { reason: string | undefined }) {
  if (reason === undefined) return null
  return (
    <p role="note" className="mb-4 rounded-md border border-line bg-warn-soft px-3 py-2 text-warn">
      You can look at this form, but not save it. {reason}.
    </p>
  )
}

/** A part of a page in a frame. */
export function Panel({
  title,
  actions,
  children,
  className = '',
}: {
  title?: string
  actions?: ReactNode
  children: ReactNode
  className?: string
}) {
  return (
    <section
      {...(title === undefined ? {} : { 'aria-label': title })}
      className={`card rounded-lg border border-line bg-panel ${className}`}
    >
      {title && (
        <div className="flex min-h-11 flex-wrap items-center justify-between gap-2 border-b border-line px-4 py-1.5">
          <h2 className="!text-base">{title}</h2>
          {actions}
        </div>
      )}
      {children}
    </section>
  )
}

/** Facts with their names; two a line on a desk where the panel `isWide`. */
export function Facts({ children, isWide = false }: { children: ReactNode; isWide?: boolean }) {
  const columns = isWide ? 'xl:grid-cols-[max-content_minmax(0,1fr)_max-content_minmax(0,1fr)]' : ''
  return (
    <dl
      className={`grid grid-cols-[max-content_1fr] gap-x-6 gap-y-1.5 [&>dd]:min-w-0 [&>dd]:break-words [&>dt]:text-soft ${columns}`}
    >
      {children}
    </dl>
  )
}

/** A page that fills the window below the bar and scrolls inside, without the margins of other pages. */
export const fullHeight = '-m-4 flex h-[calc(100dvh-3rem)] min-h-0 flex-col bg-page sm:-m-6'
