import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from 'react'

/** Nearer to the end than this counts as at the end, in pixels. */
const near_px = 24

export interface Follow {
  isFollowing: boolean
  /** Entries that came since it paused. */
  missed: number
  /** Goes to the end, and follows from there. */
  resume: () => void
  onScroll: () => void
}

/**
 * A list that stays at its end while entries come, until the user scrolls up: then it stands still, counts new entries,
 * and continues when the end is reached again. `toEnd` scrolls there.
 */
export function useFollow(
  scroller: RefObject<HTMLElement | null>,
  count: number,
  toEnd: () => void,
  isOn = true,
): Follow {
  const [isFollowing, setFollowing] = useState(isOn)
  const [countAtPause, setCountAtPause] = useState(count)
  const lastTop = useRef(0)
  const goToEnd = useRef(toEnd)
  goToEnd.current = toEnd

  useEffect(() => {
    if (isOn && isFollowing && count > 0) goToEnd.current()
  }, [count, isFollowing, isOn])

  // Rows that turn out smaller than estimated pull the list up, and the browser reports that as a scroll only after more
  // rows came: such a move is not the user's.
  useLayoutEffect(() => {
    const element = scroller.current
    if (element && isFollowing) lastTop.current = Math.min(lastTop.current, element.scrollHeight - element.clientHeight)
  })

  const onScroll = useCallback(() => {
    const element = scroller.current
    if (!element) return
    const isUp = element.scrollTop < lastTop.current - 1
    lastTop.current = element.scrollTop
    const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < near_px
    // Growth below is no scrolling by the user: only going up pauses.
    if (isAtEnd) setFollowing(true)
    else if (isUp)
      setFollowing((was) => {
        if (was) setCountAtPause(count)
        return false
      })
  }, [scroller, count])

  const resume = useCallback(() => {
    setFollowing(true)
    goToEnd.current()
  }, [])
  return { isFollowing, missed: isFollowing ? 0 : Math.max(0, count - countAtPause), resume, onScroll }
}
