import { Ellipsis } from 'lucide-react'
import type { ReactNode } from 'react'
import { NotFoundError } from '#sdk/errors.ts'
import { Button, IconButton } from '../../ui/button.tsx'
import { CopyAsCurl, copyCurl, curlOf } from '../../ui/copy-as-curl.tsx'
import { Menu, MenuItem } from '../../ui/menu.tsx'
import { Missing } from '../../ui/empty-state.tsx'
import { PageHeader } from '../../ui/page.tsx'

/** Something that can be done on a page, beside what is done most. */
interface PageAction {
  label: string
  onClick: () => void
  /** Why it cannot be done. */
  reason?: string | undefined
  isBusy?: boolean
  isDangerous?: boolean
}

/**
 * A page about one request of the API: what it is, what can be done, and that request for the shell. `more` are buttons after `actions`,
 * and on a telephone a menu.
 */
export function PageFrame({
  title,
  parent,
  lead,
  actions,
  more = [],
  path,
  query,
  missing,
  children,
}: {
  title: string
  parent?: ReactNode
  lead?: ReactNode
  actions?: ReactNode
  more?: readonly PageAction[]
  path: string
  query?: object
  /** What the page is about, where it can be missing: `parent` is then the way back. */
  missing?: { noun: string; error: unknown; retry: () => unknown }
  children: ReactNode
}) {
  const request = query ? { query } : {}
  if (missing?.error instanceof NotFoundError)
    return <Missing noun={missing.noun} error={missing.error} retry={() => void missing.retry()} back={parent} />
  return (
    <>
      <PageHeader
        title={title}
        parent={parent}
        actions={
          <>
            {more.length === 0 ? (
              <CopyAsCurl path={path} {...request} />
            ) : (
              <span className="max-sm:hidden">
                <CopyAsCurl path={path} {...request} />
              </span>
            )}
            {actions}
            {more.map((action) => (
              <span key={action.label} className="max-sm:hidden">
                <MoreButton {...action} />
              </span>
            ))}
            {more.length > 0 && (
              <span className="sm:hidden">
                <Menu
                  trigger={
                    <IconButton label="More actions" kind="plain">
                      <Ellipsis size={16} aria-hidden />
                    </IconButton>
                  }
                >
                  {more.map((action) => (
                    <MoreItem key={action.label} {...action} />
                  ))}
                  <MenuItem onClick={() => copyCurl(curlOf('GET', path, request))}>Copy as curl</MenuItem>
                </Menu>
              </span>
            )}
          </>
        }
      >
        {lead}
      </PageHeader>
      {children}
    </>
  )
}

function MoreButton({ label, onClick, reason, isBusy = false, isDangerous = false }: PageAction) {
  return (
    <Button kind={isDangerous ? 'danger' : 'plain'} reason={reason} disabled={isBusy} onClick={onClick}>
      {label}
    </Button>
  )
}

function MoreItem({ label, onClick, reason, isBusy = false, isDangerous = false }: PageAction) {
  return (
    <MenuItem onClick={onClick} reason={reason ?? (isBusy ? 'In progress' : undefined)} isDangerous={isDangerous}>
      {label}
    </MenuItem>
  )
}
