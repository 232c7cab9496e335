import { AuthenticationError } from '#sdk/errors.ts'
import { basePath, signInPath } from './client.ts'

/** The name of the window in which a person signs in again, and of the channel on which it says that it did. */
const signInWindow = 'cadre-sign-in'
/** What the address says that this window comes to in the end. */
const signedInParam = 'signed-in'

const listeners = new Set<() => void>()
let hasAnswered = false
let isSignedOut = false

function set(next: boolean): void {
  if (next === isSignedOut) return
  isSignedOut = next
  for (const listener of listeners) listener()
}

/** Whether the session ended under this page. Forms keep what was typed until the person has signed in again. */
export const signedOut = {
  get: (): boolean => isSignedOut,
  subscribe(listener: () => void): () => void {
    listeners.add(listener)
    return () => listeners.delete(listener)
  },
}

/** Notes that the API answered this page: from then on it is not left when the session ends. */
export function noteAnswer(): void {
  hasAnswered = true
}

/** A visitor without a session is sent to the sign-in page; a page that has been used stays, and asks for it. */
export function noteFailure(error: Error): void {
  if (!(error instanceof AuthenticationError)) return
  if (hasAnswered) set(true)
  else location.assign(signInPath())
}

/** Notes that there is a session again. */
export function noteSignedIn(): void {
  set(false)
}

/** Opens the sign-in page beside this one. */
export function openSignIn(): void {
  const address = `${basePath}login?${new URLSearchParams({ return_to: `/?${signedInParam}=window` })}`
  window.open(address, signInWindow, 'popup,width=520,height=720')
}

/** Called when a window of this browser has signed in; returns a function that ends that. */
export function onSignIn(listener: () => void): () => void {
  const channel = new BroadcastChannel(signInWindow)
  channel.addEventListener('message', listener)
  return () => channel.close()
}

/**
 * Whether this window was opened to sign in. Once the console loads in it, that is done: it says so, and closes where the browser lets
 * it. Pages of the service are kept apart from their openers, so neither a name nor an opener would tell it.
 */
export function endSignInWindow(): boolean {
  if (new URLSearchParams(location.search).get(signedInParam) !== 'window') return false
  const channel = new BroadcastChannel(signInWindow)
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a channel has no target
  channel.postMessage('signed in')
  channel.close()
  window.close()
  return true
}
