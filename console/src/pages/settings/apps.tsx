import { SessionList } from './session-list.tsx'

export default function Apps() {
  return <SessionList kind="apps" />
}
