import { Link, type LinkProps } from '@tanstack/react-router'
import { useEffect, useRef } from 'react'

/**
 * Parts of a page, each with its own address: they are links, so they open in new windows and work with back and
 * forward.
 */
export function TabLinks({
  label,
  tabs,
  current,
}: {
  label: string
  tabs: readonly { id: string; label: string; link: LinkProps }[]
  current: string
}) {
  const list = useRef<HTMLUListElement>(null)
  // On a telephone they do not all fit: the one that is open is in sight.
  useEffect(() => {
    list.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [current])
  return (
    <nav aria-label={label} className="mb-4 overflow-x-auto border-b border-line">
      <ul ref={list} className="flex gap-1">
        {tabs.map(({ id, label, link }) => (
          <li key={id}>
            <Link
              {...link}
              aria-current={id === current ? 'page' : undefined}
              className={`inline-block border-b-2 px-3 py-2 max-lg:px-2.5 whitespace-nowrap no-underline ${id === current ? 'border-accent font-medium text-text' : 'border-transparent text-soft hover:text-text'}`}
            >
              {label}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  )
}
