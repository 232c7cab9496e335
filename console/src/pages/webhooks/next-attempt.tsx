import { Time } from '../../ui/time.tsx'

/** When a delivery is sent next; one whose time has come waits only until the receiver has fewer requests under way. */
export function NextAttempt({ at, exact = false }: { at: string | null; exact?: boolean }) {
  if (at !== null && Date.parse(at) <= Date.now()) return <>due now</>
  if (at === null || !exact) return <Time at={at} />
  return (
    <>
      <Time at={at} /> (<Time at={at} form="exact" />)
    </>
  )
}
