import { createContext, useContext, useEffect, useRef, type RefObject } from 'react'
import { AuthenticationError } from '#sdk/errors.ts'
import { fieldFault } from '../../api/error-text.ts'

/** Why the service refused what the form around was sent. */
export const Refusal = createContext<unknown>(undefined)

/** What the service says is wrong with a field of the request that the form around stands for. */
export function useFieldRefusal(field: string | undefined): string | undefined {
  const error = useContext(Refusal)
  return field === undefined ? undefined : fieldFault(error, field)
}

/**
 * For a form that shows why it was refused: each refusal moves the focus to the first field at fault, also in a part that is
 * folded away, or else back to the button that sent it, which was disabled meanwhile.
 */
export function useFocusOnRefusal(error: unknown): RefObject<HTMLFormElement | null> {
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    // Where the session has ended, a dialog over the form asks for another.
    if (error == null || error instanceof AuthenticationError) return
    const target =
      form.current?.querySelector<HTMLElement>('[aria-invalid=true]') ??
      form.current?.querySelector<HTMLElement>('[type=submit]')
    let folded = target?.closest('details')
    while (folded) {
      folded.open = true
      folded = folded.parentElement?.closest('details')
    }
    // In the middle: what stands at the top of a page would cover it.
    target?.scrollIntoView({ block: 'center' })
    target?.focus({ preventScroll: true })
  }, [error])
  return form
}
