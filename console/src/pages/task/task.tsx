import { PageHeader } from '../../ui/page.tsx'

export default function TaskPage() {
  return <PageHeader title="Task" />
}
