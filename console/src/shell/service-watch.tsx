import { useQuery, useQueryClient, type Query } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { api } from '../api/client.ts'
import { isOutOfReach } from '../api/error-text.ts'
import { statusQuery } from '../api/queries.ts'
import { Button } from '../ui/button.tsx'

/** How often the version is asked for, and a service that was out of reach, in milliseconds. */
const version_ms = 60_000
const away_ms = 3_000

/**
 * Whether the service is up, and its version: what failed while it was down is read again when it is back, and a
 * version other than that of the page is shown, since its files and data may differ.
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

  if (data === undefined || data.version === first.current) return null
  return (
    <div
      role="status"
      className="mb-4 flex flex-wrap items-center justify-between gap-3 rounded-md border border-warn bg-warn-soft p-3"
    >
      <p>
        The service was updated from {first.current} to {data.version}. Save your changes, then reload this page.
      </p>
      <Button onClick={() => location.reload()}>Reload</Button>
    </div>
  )
}
