import { useCallback, useEffect, useLayoutEffect, useRef, useState, type RefObject } from 'react'

/** Nearer to the end than this counts as at the end, in pixels. */
const near_px = 24
/** So long after an input of the user a scroll may be its effect: a wheel goes on turning, a page glides. */
const glide_ms = 1000
/** Inputs that scroll. */
const inputs = ['wheel', 'touchmove', 'pointerdown', 'keydown'] as const

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
  const lastHeight = useRef(0)
  const lastInput_ms = useRef(-Infinity)
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

  // What was measured after the list was sent to its end may have left it short of it.
  useEffect(() => {
    const element = scroller.current
    if (!element || !isOn || !isFollowing || count === 0 || isRecent(lastInput_ms.current)) return
    if (element.scrollHeight - element.scrollTop - element.clientHeight >= near_px) goToEnd.current()
  })

  useEffect(() => {
    const element = scroller.current
    const onInput = (): void => void (lastInput_ms.current = performance.now())
    for (const type of inputs) element?.addEventListener(type, onInput, { passive: true })
    return () => inputs.forEach((type) => element?.removeEventListener(type, onInput))
  })

  const onScroll = useCallback(() => {
    const element = scroller.current
    if (!element) return
    // Rows that are measured while entries come move the list up as well: its height changes with that.
    const isByUser = element.scrollHeight === lastHeight.current || isRecent(lastInput_ms.current)
    const isUp = element.scrollTop < lastTop.current - 1 && isByUser
    lastTop.current = element.scrollTop
    lastHeight.current = element.scrollHeight
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

function isRecent(input_ms: number): boolean {
  return performance.now() - input_ms < glide_ms
}
