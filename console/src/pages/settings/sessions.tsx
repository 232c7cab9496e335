import { SessionList } from './session-list.tsx'

export default function Sessions() {
  return <SessionList kind="browsers" />
}
