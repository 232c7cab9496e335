import { useQuery, useQueryClient, type Query } from '@tanstack/react-query'
import { useEffect, useRef, useSyncExternalStore, type ReactNode } from 'react'
import { api } from '../api/client.ts'
import { isOutOfReach, unreachedText } from '../api/error-text.ts'
import { away } from '../api/reach.ts'
import { statusQuery } from '../api/queries.ts'
import { Button } from '../ui/button.tsx'

/** How often the version is asked for, and a service that was out of reach, in milliseconds. */
const version_ms = 60_000
const away_ms = 3_000

/**
 * Whether the service can be reached, and its version: that it cannot is said once, for all that the page reads, and what failed is read
 * again when it is back. A version other than that of the page is shown, since its files and data may differ.
 */
export function ServiceWatch() {
  const queries = useQueryClient()
  const { data } = useQuery({ ...statusQuery, refetchInterval: version_ms })
  const first = useRef<string>(undefined)
  first.current ??= data?.version

  useEffect(() => {
    const wanted = {
      type: 'active',
      fetchStatus: 'idle',
      predicate: ({ state }: Query) => isOutOfReach(state.error),
    } as const
    let isAsking = false
    const look = async (): Promise<void> => {
      if (isAsking || document.hidden || queries.getQueryCache().findAll(wanted).length === 0) return
      isAsking = true
      try {
        // Asked for first, so that what is shown as failed does not come and go while nothing answers.
        await api.service.status({ maxRetries: 0 })
        await queries.refetchQueries(wanted)
      } catch {
        // It is away still.
      } finally {
        isAsking = false
      }
    }
    const timer = setInterval(() => void look(), away_ms)
    return () => clearInterval(timer)
  }, [queries])

  const isAway = useSyncExternalStore(away.subscribe, away.get)
  if (isAway)
    return (
      <Notice role="alert" look="bg-bad-soft text-bad">
        <p className="min-w-0 flex-1">{unreachedText}</p>
        <Button onClick={() => void queries.refetchQueries({ type: 'active' })}>Try again</Button>
      </Notice>
    )
  if (data === undefined || data.version === first.current) return null
  return (
    <Notice role="status" look="bg-warn-soft text-warn">
      <p className="min-w-0 flex-1">
        The service was updated from {first.current} to {data.version}. Save your changes, then reload this page.
      </p>
      <Button onClick={() => location.reload()}>Reload</Button>
    </Notice>
  )
}

/** A strip below the bar, in sight wherever the page is scrolled to. */
function Notice({ role, look, children }: { role: 'alert' | 'status'; look: string; children: ReactNode }) {
  return (
    <div
      role={role}
      className={`flex flex-wrap items-center gap-3 border-b border-line px-4 py-1.5 font-medium sm:px-6 ${look}`}
    >
      {children}
    </div>
  )
}
