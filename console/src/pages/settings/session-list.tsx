import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { serviceUrl } from '../../agents/snippets.tsx'
import { api } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { CopyId } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { ErrorBox } from '../../ui/error-box.tsx'
import { Skeleton } from '../../ui/skeleton.tsx'
import { Badge } from '../../ui/status.tsx'
import { Time } from '../../ui/time.tsx'
import { tell } from '../../ui/toast.tsx'
import { useSearchText } from '../../search-state.ts'
import { PageFrame } from '../parts/page-frame.tsx'
import { scopeWords } from './scope-presets.ts'
import type { Operations } from '#sdk/types.ts'
import { plural } from '../../format.ts'

type Session = Operations['listSessions']['result']['sessions'][number]

const texts = {
  browsers: {
    title: 'Sessions',
    lead: 'Browsers in which you are signed in.',
    none: 'No browser is signed in to your account.',
  },
  apps: {
    title: 'OAuth apps',
    lead: 'Apps that you allowed to act for you.',
    none: 'An app that you allow appears here, with its access and last activity: the command line after “cadre login”, or an editor. You can end its access at any time.',
  },
} as const

/** Where a user is signed in, or which apps they let in. Whatever is ended is refused with its next request. */
export function SessionList({
  kind,
  tabs,
  children,
}: {
  kind: keyof typeof texts
  tabs?: ReactNode
  children?: ReactNode
}) {
  const [url, setUrl] = useSearchText()
  const queries = useQueryClient()
  const sessions = useQuery({ queryKey: ['sessions'], queryFn: () => api.sessions.list() })
  const again = () => queries.invalidateQueries({ queryKey: ['sessions'] })
  const end = useMutation({
    mutationFn: (id: string) => api.sessions.delete(id),
    onSuccess: () => {
      tell('It has ended')
      setUrl({ panel: undefined })
      return again()
    },
  })
  const endOthers = useMutation({
    mutationFn: () => api.sessions.deleteOthers(),
    onSuccess: ({ revoked_count }) => {
      tell(`${revoked_count} ended`)
      setUrl({ panel: undefined })
      return again()
    },
  })
  const all = sessions.data?.sessions ?? []
  const shown = all.filter(({ app }) => (app === null) === (kind === 'browsers'))
  const others = all.filter(({ is_current }) => !is_current).length
  const asked = all.find(({ id }) => id === url.panel)
  const failure = end.error ?? endOthers.error
  return (
    <PageFrame
      title={texts[kind].title}
      lead={texts[kind].lead}
      path="/api/v1/auth/sessions"
      actions={
        kind === 'browsers' && (
          <Button
            kind="danger"
            onClick={() => setUrl({ panel: 'others' })}
            reason={others === 0 ? 'There is no other session, and no app' : undefined}
          >
            End all others
          </Button>
        )
      }
    >
      {tabs}
      <ErrorBox error={failure} />
      {sessions.isPending && <Skeleton label="Loading sessions" />}
      <ErrorBox error={sessions.error} retry={() => void sessions.refetch()} />
      {sessions.data && shown.length === 0 && (
        <EmptyState title={kind === 'apps' ? 'You have allowed no app' : 'No sessions'}>
          <p>{texts[kind].none}</p>
        </EmptyState>
      )}
      <ul className="grid gap-2">
        {shown.map((session) => (
          <Item key={session.id} {...session} onEnd={() => setUrl({ panel: session.id })} />
        ))}
      </ul>
      <Dialog title="End all other sessions" isOpen={url.panel === 'others'} close={() => setUrl({ panel: undefined })}>
        <p className="mb-4 text-sm">
          {plural(others, 'session or app ends', 'sessions and apps end')} with the next request. This one stays. API
          keys are not touched.
        </p>
        <div className="flex justify-end">
          <Button kind="danger" onClick={() => endOthers.mutate()} disabled={endOthers.isPending}>
            End all others
          </Button>
        </div>
      </Dialog>
      <Dialog
        title={
          asked?.is_current ? 'End this session' : asked?.app ? `End the access of ${asked.app.name}` : 'End a session'
        }
        isOpen={asked !== undefined}
        close={() => setUrl({ panel: undefined })}
      >
        <p className="mb-4 text-sm">
          {asked?.is_current
            ? 'You are signed out here.'
            : asked?.app === null
              ? `Users of “${deviceOf(asked.user_agent)}” must sign in again.`
              : 'The app is refused with its next request, and must ask you again.'}
        </p>
        <div className="flex justify-end">
          <Button kind="danger" onClick={() => asked && end.mutate(asked.id)} disabled={end.isPending}>
            {asked?.app ? 'End access' : 'End session'}
          </Button>
        </div>
      </Dialog>
      {children}
    </PageFrame>
  )
}

function Item({
  id,
  app,
  user_agent,
  ip_address,
  created_at,
  last_activity,
  expires_at,
  is_current,
  onEnd,
}: Session & { onEnd: () => void }) {
  return (
    <li
      data-row={id}
      className="flex flex-wrap items-center justify-between gap-3 rounded-lg border border-line bg-panel p-3"
    >
      <div className="min-w-0">
        <div className="flex flex-wrap items-center gap-2 text-sm font-medium">
          <span title={user_agent}>{app?.name ?? deviceOf(user_agent)}</span>
          {is_current && <Badge tone="good">this one</Badge>}
        </div>
        <div className="mt-0.5 text-xs text-soft">
          {ip_address} · active <Time at={last_activity} /> · since <Time at={created_at} /> · ends{' '}
          <Time at={expires_at} />
        </div>
        {app && (
          <p className="mt-0.5 text-sm text-soft">
            May {app.scopes.map((scope) => lowered(scopeWords[scope])).join('; ')}. Access to{' '}
            <code>{app.resource ?? `${serviceUrl()}/api/v1`}</code>
          </p>
        )}
        <CopyId id={id} />
      </div>
      <Button
        data-open
        onClick={onEnd}
        aria-label={app ? `End access of ${app.name}` : `End the session of ${deviceOf(user_agent)} at ${ip_address}`}
      >
        {app ? 'End access' : 'End'}
      </Button>
    </li>
  )
}

const lowered = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

/** What a person would call it; the whole text is its title. */
export function deviceOf(user_agent: string): string {
  const browser = /(Firefox|Edg|OPR|HeadlessChrome|Chrome|Safari|cadre-cli|curl)\/?/.exec(user_agent)?.[1]
  const system = /(Windows|Macintosh|Android|iPhone|iPad|Linux)/.exec(user_agent)?.[1]
  const names: Record<string, string> = { Edg: 'Edge', OPR: 'Opera', HeadlessChrome: 'Chrome', Macintosh: 'macOS' }
  const known = [browser, system].filter((part) => part !== undefined).map((part) => names[part] ?? part)
  return known.length > 0 ? known.join(' on ') : user_agent.slice(0, 60) || 'Unknown device'
}
