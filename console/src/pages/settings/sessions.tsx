import { PageHeader } from '../../ui/page.tsx'

export default function SessionsPage() {
  return <PageHeader title="Sessions" />
}
