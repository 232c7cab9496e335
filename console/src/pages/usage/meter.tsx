/** How much of something is used; what is written beside it says the same. */
export function Meter({ share, isWide }: { share: number; isWide?: boolean }) {
  const tone = share >= 1 ? 'bg-bad' : share >= 0.8 ? 'bg-warn' : 'bg-accent'
  return (
    <span
      aria-hidden
      className={`inline-block h-1.5 overflow-hidden rounded-full bg-quiet ${isWide ? 'w-full' : 'w-20'}`}
    >
      <span className={`block h-full ${tone}`} style={{ width: `${share * 100}%` }} />
    </span>
  )
}
