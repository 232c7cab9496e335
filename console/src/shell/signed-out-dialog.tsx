import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { api } from '../api/client.ts'
import { noteSignedIn, onSignIn, openSignIn, signedOut } from '../api/signed-out.ts'
import { Button } from '../ui/button.tsx'
import { Dialog } from '../ui/dialog.tsx'

/** Asks for a new session over a page whose session has ended; the page keeps what was typed. */
export function SignedOutDialog() {
  const isSignedOut = useSyncExternalStore(signedOut.subscribe, signedOut.get)
  const [isDismissed, setDismissed] = useState(false)
  const queries = useQueryClient()
  useEffect(() => {
    if (!isSignedOut) return setDismissed(false)
    const look = async (): Promise<void> => {
      if (document.hidden) return
      try {
        await api.user.get({ maxRetries: 0 })
      } catch {
        return
      }
      noteSignedIn()
      await queries.invalidateQueries()
    }
    const again = (): void => void look()
    const end = onSignIn(again)
    window.addEventListener('focus', again)
    document.addEventListener('visibilitychange', again)
    return () => {
      end()
      window.removeEventListener('focus', again)
      document.removeEventListener('visibilitychange', again)
    }
  }, [isSignedOut, queries])
  return (
    <Dialog isOpen={isSignedOut && !isDismissed} close={() => setDismissed(true)} title="Your session has ended">
      <p className="mb-4 text-soft">Sign in again to continue. What you typed on this page is kept.</p>
      <div className="flex justify-end gap-2">
        <Button onClick={() => setDismissed(true)}>Not now</Button>
        <Button kind="primary" onClick={openSignIn}>
          Sign in
        </Button>
      </div>
    </Dialog>
  )
}

/** What the window shows that was opened to sign in, where the browser does not let it close itself. */
export function SignedInNotice() {
  return (
    <main className="mx-auto max-w-md px-4 py-16 text-center">
      <h1>You are signed in</h1>
      <p className="mt-2 text-soft">Close this window and return to the page you came from.</p>
    </main>
  )
}
