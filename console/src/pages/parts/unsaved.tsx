import { useBlocker } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'

interface Guard {
  isUnsaved: () => boolean
  /** Whether another tab of the same page loses it too. */
  isOfTab?: boolean
  title?: string
  children?: ReactNode
}

/**
 * Asks before what was written, or shown once, is lost: by a link, by going back, or, in the browser's own words, by closing the
 * tab. Another part of the same page loses nothing. `isUnsaved` is asked at that moment.
 */
export function UnsavedGuard({ isUnsaved, isOfTab = false, title = 'Leave without saving?', children }: Guard) {
  const { status, proceed, reset } = useBlocker({
    shouldBlockFn: ({ current, next }) =>
      (current.pathname !== next.pathname || (isOfTab && tabOf(current.search) !== tabOf(next.search))) && isUnsaved(),
    enableBeforeUnload: isUnsaved,
    withResolver: true,
  })
  return (
    <Dialog isOpen={status === 'blocked'} close={() => reset?.()} title={title}>
      <p className="mb-4 text-soft">{children ?? 'What you wrote here is not saved, and is lost when you leave.'}</p>
      <div className="flex justify-end gap-2">
        <Button onClick={() => reset?.()}>Stay here</Button>
        <Button kind="danger" onClick={() => proceed?.()}>
          Leave
        </Button>
      </div>
    </Dialog>
  )
}

const tabOf = (search: { tab?: unknown }): unknown => search.tab
