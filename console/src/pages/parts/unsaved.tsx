import { useBlocker } from '@tanstack/react-router'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'

/**
 * Asks before what was written is lost: by a link, by going back, or, in the browser's own words, by closing the tab. Another part
 * of the same page loses nothing. `isUnsaved` is asked at that moment.
 */
export function UnsavedGuard({ isUnsaved }: { isUnsaved: () => boolean }) {
  const { status, proceed, reset } = useBlocker({
    shouldBlockFn: ({ current, next }) => current.pathname !== next.pathname && isUnsaved(),
    enableBeforeUnload: isUnsaved,
    withResolver: true,
  })
  return (
    <Dialog isOpen={status === 'blocked'} close={() => reset?.()} title="Leave without saving?">
      <p className="mb-4 text-soft">What you wrote here is not saved, and is lost when you leave.</p>
      <div className="flex justify-end gap-2">
        <Button onClick={() => reset?.()}>Stay here</Button>
        <Button kind="danger" onClick={() => proceed?.()}>
          Leave
        </Button>
      </div>
    </Dialog>
  )
}
