import type { ReactNode } from 'react'
import { CopyAsCurl } from '../../ui/copy-as-curl.tsx'
import { PageHeader } from '../../ui/page.tsx'

/** A page about one request of the API: what it is, what can be done, and that request for the shell. */
export function PageFrame({
  title,
  lead,
  actions,
  path,
  query,
  children,
}: {
  title: string
  lead?: ReactNode
  actions?: ReactNode
  path: string
  query?: object
  children: ReactNode
}) {
  return (
    <>
      <PageHeader
        title={title}
        actions={
          <>
            <span className="max-sm:order-last">
              <CopyAsCurl path={path} {...(query ? { query } : {})} />
            </span>
            {actions}
          </>
        }
      >
        {lead}
      </PageHeader>
      {children}
    </>
  )
}
